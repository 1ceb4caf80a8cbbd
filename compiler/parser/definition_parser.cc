#include "compiler/parser/definition_parser.h"

#include "ir/support/precondition.h"

namespace mscclc {

using ast::Stmt;
using ast::StmtKind;
using ast::TextRange;

const Stmt* DefinitionParser::let(StmtKind kind) {
  ast::Let* s = in_.start<ast::Let>(kind);
  in_.advance();
  const size_t mark = definitions_.mark();
  do {
    if (!definition(kind)) return nullptr;
  } while (in_.accept_comma());
  s->definitions = definitions_.take(mark, ast_.arena());
  return in_.finish(s);
}

bool DefinitionParser::definition(StmtKind kind) {
  ast::Definition d;
  const Token name = in_.tok();
  const TextRange place = name.place;
  if (!in_.declared_name(d.name)) return false;
  if (kind == StmtKind::let && in_.here(Tok::lparen)) {
    if (blocks_ > 0) {
      in_.error(
          "misplaced", place,
          "the function '" + std::string(ast_.text(place)) + "' must be defined at file level");
    }
    d.function = true;
    in_.callable_name(name);
    if (!names_list(d.parameters)) return false;
  }
  if (!in_.here(Tok::assign)) return in_.expected("'='");
  in_.advance_line();
  if (!(d.function && in_.here(Tok::lbrace) ? function_body(d) : exprs_.expr(d.value)))
    return false;
  definitions_.push(d);
  return true;
}

/// `{ let y = … ; … ; value }`. REQUIRES: at '{'.
bool DefinitionParser::function_body(ast::Definition& out) {
  precondition(in_.tok().kind == Tok::lbrace);
  ++blocks_;
  in_.advance();
  const bool good = function_values(out);
  --blocks_;
  if (!good) skip_body();
  return good;
}

bool DefinitionParser::function_values(ast::Definition& out) {
  const size_t mark = definitions_.mark();
  while (true) {
    in_.set_fresh(false);
    if (in_.tok().kind == Tok::semicolon) {
      in_.advance();
    } else if (in_.tok().symbol == ast::w_let) {
      in_.advance();
      do {
        if (!definition(StmtKind::let)) return false;
      } while (in_.accept_comma());
      if (!in_.end_statement()) return false;
    } else {
      break;
    }
  }
  out.locals = definitions_.take(mark, ast_.arena());
  if (in_.tok().kind == Tok::rbrace) return in_.expected("the value of the function");
  if (!exprs_.expr(out.value) || !in_.end_statement()) return false;
  while (in_.tok().kind == Tok::semicolon) in_.advance();
  in_.set_fresh(false);
  return in_.expect(Tok::rbrace, "'}'");
}

/// After a mistake in the body of a function: to what follows its '}'.
void DefinitionParser::skip_body() {
  in_.forget_brackets();
  exprs_.reset_depth();
  while (in_.tok().kind != Tok::end && in_.tok().kind != Tok::rbrace) {
    const bool item = in_.tok().kind == Tok::keyword && in_.tok().symbol < ast::w_let;
    if (item && in_.at_margin()) return;
    in_.tok().kind == Tok::lbrace ? in_.skip_braces() : in_.advance();
  }
  if (in_.tok().kind == Tok::rbrace) in_.advance();
}

/// `( names )`, perhaps empty. REQUIRES: at '('.
bool DefinitionParser::names_list(ast::Array<const ast::Name>& out) {
  precondition(in_.tok().kind == Tok::lparen);
  const Token opened = in_.tok();
  const size_t mark = names_.mark();
  in_.open_bracket();
  if (in_.tok().kind != Tok::rparen) {
    do {
      ast::Name name;
      if (!in_.declared_name(name)) return false;
      names_.push(name);
    } while (in_.accept_comma());
  }
  out = names_.take(mark, ast_.arena());
  return in_.close(Tok::rparen, opened, "',' or ')'");
}

}  // namespace mscclc
