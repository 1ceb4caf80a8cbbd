// Ops: operands, options, locations. IR text consists of little else, so this is the hot path.
#include "compiler/parser/parser_state.h"

namespace mscclc {

using ast::Place;
using ast::Stmt;
using ast::StmtKind;

const Stmt* Parser::op() {
  ast::OpStmt* s = start<ast::OpStmt>(StmtKind::op);
  s->op = ast::op_of(tok_.symbol);
  const size_t mark = operands_.mark();
  advance();
  const bool bare = fresh_ || tok_.kind == Tok::arrow || tok_.kind == Tok::at ||
                    tok_.kind == Tok::semicolon || tok_.kind == Tok::rbrace ||
                    tok_.kind == Tok::end;
  if (!bare && !operands()) return nullptr;
  s->dst_count = static_cast<uint32_t>(operands_.mark() - mark);
  if (here(Tok::arrow)) {
    s->has_arrow = true;
    advance_line();
    if (!operands()) return nullptr;
  }
  s->operands = operands_.take(mark, ast_.arena());
  if (here(Tok::name) && !options(s->options)) return nullptr;
  if (here(Tok::at) && !locations(s->locations)) return nullptr;
  return finish(s);
}

/// The blocks are an expression: `barrier 0..4`.
const Stmt* Parser::barrier() {
  ast::Barrier* s = start<ast::Barrier>(StmtKind::barrier);
  advance();
  if (!expr(s->blocks)) return nullptr;
  if (here(Tok::at) && !locations(s->locations)) return nullptr;
  return finish(s);
}

bool Parser::operands() {
  do {
    if (!operand()) return false;
  } while (accept_comma());
  return true;
}

/// A name; but a word of the language in front of another name is the next statement, which lacks
/// its ';'.
bool Parser::at_operand() {
  if (!at_name()) return false;
  if (tok_.kind == Tok::name || peek().kind != Tok::name || next_.newline) return true;
  return next_.symbol == ast::w_relaxed || next_.symbol == ast::w_op ||
         next_.symbol == ast::w_part || next_.symbol == ast::w_complete;
}

bool Parser::operand() {
  if (!at_operand()) return expected("an operand");
  ast::Operand o;
  const uint32_t begin = tok_.place.begin;
  o.head = take_name();
  if (here(Tok::lbracket) && !index_list(o.index)) return false;
  o.head_end = last_end_;
  if (accept(Tok::dot)) {
    if (!at_name()) return expected("the name of a buffer");
    o.member = take_name();
    if (here(Tok::lbracket) && !index_list(o.member_index)) return false;
  }
  o.place = since(begin);
  if (here(ast::w_for)) {
    if (file_.is_ir) return not_in_ir(tok_.place, "'for'");
    advance();
    ast::Binder* b = ast_.arena().make<ast::Binder>();
    if (!binder(*b)) return false;
    o.binder = b;
  }
  operands_.push(o);
  return true;
}

bool Parser::options(ast::Array<const ast::Option>& out) {
  const size_t mark = options_.mark();
  do {
    if (!option()) return false;
  } while (accept_comma());
  out = options_.take(mark, ast_.arena());
  return true;
}

bool Parser::option() {
  if (!here(Tok::name)) return expected("an option");
  ast::Option o;
  const uint32_t begin = tok_.place.begin;
  o.name = take_name();
  if (accept(Tok::colon) && !value(o)) return false;
  o.place = since(begin);
  options_.push(o);
  return true;
}

bool Parser::locations(ast::Array<const ast::Location>& out) {
  const size_t mark = locations_.mark();
  while (here(Tok::at)) {
    if (!location()) return false;
  }
  out = locations_.take(mark, ast_.arena());
  return true;
}

/// `@"file":line:column(name=value, …)`
bool Parser::location() {
  ast::Location l;
  const uint32_t begin = tok_.place.begin;
  advance();
  if (here(Tok::string)) {
    Place place;
    if (!string_value(l.file, place) || !expect(Tok::colon, "':'")) return false;
  }
  if (!location_number(l.line) || !expect(Tok::colon, "':'") || !location_number(l.column)) {
    return false;
  }
  if (here(Tok::lparen)) {
    const Token opened = tok_;
    const size_t mark = values_.mark();
    open_bracket();
    do {
      if (!location_value()) return false;
    } while (accept_comma());
    l.values = values_.take(mark, ast_.arena());
    if (!close(Tok::rparen, opened, "',' or ')'")) return false;
  }
  l.place = since(begin);
  locations_.push(l);
  return true;
}

/// A line or a column, from 1.
bool Parser::location_number(uint32_t& out) {
  if (!here(Tok::integer)) return expected("a number");
  if (tok_.value == 0 || tok_.value > UINT32_MAX) {
    error("bad-location", tok_.place,
          std::string(ast_.text(tok_.place)) + " is not a line or column number");
  }
  out = static_cast<uint32_t>(tok_.value);
  advance();
  return true;
}

/// `name=value`, the value a plain number.
bool Parser::location_value() {
  ast::LocationValue v;
  if (!at_word()) return expected("a name");
  v.name = take_name();
  if (!here(Tok::assign)) return expected("'='");
  advance_line();
  const bool negative = accept(Tok::sub);
  ast::Expr number;
  if (!here(Tok::integer)) return expected("a number");
  if (!integer(number, negative)) return false;
  v.value = number.value;
  values_.push(v);
  return true;
}

}  // namespace mscclc
