#include "compiler/rows/row_parser.h"

#include "compiler/rows/row_types.h"
#include "ir/rows/check_row.h"
#include "ir/support/precondition.h"

namespace mscclc::rows {

using ast::TextRange;

bool RowParser::at_text(std::string_view text) const {
  return in_.at_word() && ast_.text(in_.tok().symbol) == text;
}

std::optional<Function> RowParser::declaration() {
  precondition(in_.tok().symbol == ast::w_row);
  const bool good = head() ? body() : skip_body();
  if (!good) return {};
  if (const auto fault = fault_of(function_)) {
    in_.error("row-function", ast_.place(name_), "'" + function_.name + "' cannot be: " + *fault);
    return {};
  }
  warn_of_unused();
  return std::move(function_);
}

bool RowParser::head() {
  in_.advance();
  if (!in_.declared_name(name_)) return false;
  function_.name = ast_.text(name_);
  if (!in_.here(Tok::lparen)) return in_.expected("'('");
  if (!parameters() || !rounding()) return false;
  if (!in_.here(Tok::lbrace)) return in_.expected("'{'");
  return true;
}

bool RowParser::parameters() {
  const Token opened = in_.tok();
  in_.open_bracket();
  if (in_.tok().kind != Tok::rparen) {
    do {
      if (!parameter()) return false;
    } while (in_.accept_comma());
  }
  return in_.close(Tok::rparen, opened, "',' or ')'");
}

bool RowParser::parameter() {
  ast::Name name;
  if (!in_.declared_name(name)) return false;
  const TextRange place = ast_.place(name);
  if (function_.params.size() == kMaxParams) {
    in_.error("too-many-elements", place,
              "a row function has at most " + std::to_string(kMaxParams) + " parameters");
    return false;
  }
  Stored param{.name = std::string(ast_.text(name))};
  if (!exprs_.may_declare(name) || !read_stored(ast_, in_, param, true)) return false;
  Node node{.op = Op::param, .spread = spread_of(param.kind), .group = param.group};
  node.index = static_cast<uint32_t>(function_.params.size());
  param.node = nodes_.leaf(node, place);
  if (param.node == kNoNode) return false;
  exprs_.names()[name.id] = {.node = param.node, .place = place};
  function_.params.push_back(std::move(param));
  return true;
}

bool read_stored(const ast::Ast& ast, TokenStream& in, Stored& into, std::optional<bool> input) {
  if (!in.here(Tok::colon)) return in.expected("':' and what '" + into.name + "' is");
  in.advance();
  const std::string kinds = "one of " + kind_words(input.value_or(true));
  const auto kind = in.at_word() ? find_kind(ast.text(in.tok().symbol)) : std::nullopt;
  if (!kind || (input && !(*input ? can_be_input(*kind) : can_be_output(*kind)))) {
    return in.expected(kinds);
  }
  into.kind = *kind;
  in.advance();
  if (*kind == Kind::groups) {
    const Token opened = in.tok();
    if (!in.here(Tok::lparen)) return in.expected("'(' and how many columns a group has");
    in.open_bracket();
    into.group = read_group_size(in);
    if (into.group == 0 || !in.close(Tok::rparen, opened, "')'")) return false;
  }
  const auto type = in.at_word() ? find_type(ast.text(in.tok().symbol)) : std::nullopt;
  if (!type) return in.expected("one of the types " + type_words());
  into.type = *type;
  in.advance();
  return true;
}

/// Nothing, or `round: chain`, or `round: once`.
bool RowParser::rounding() {
  if (!at_text("round")) return true;
  in_.advance();
  if (!in_.expect(Tok::colon, "':'")) return false;
  if (!at_text("chain") && !at_text("once")) return in_.expected("'chain' or 'once'");
  function_.rounding = at_text("once") ? Rounding::once : Rounding::chain;
  in_.advance();
  return true;
}

/// All statements, each mistake reported; passes the '}'. REQUIRES: at '{'.
bool RowParser::body() {
  precondition(in_.tok().kind == Tok::lbrace);
  const Token opened = in_.tok();
  bool good = true;
  in_.advance();
  while (in_.tok().kind != Tok::end && in_.tok().kind != Tok::rbrace) {
    in_.set_fresh(false);
    if (in_.accept(Tok::semicolon)) continue;
    const uint32_t begin = in_.tok().place.begin;
    if (!statement() || !end_statement()) {
      good = false;
      skip_statement(begin);
    }
  }
  if (in_.tok().kind == Tok::end) {
    in_.error("missing-brace", opened.place, "the '{' is not closed");
    return false;
  }
  in_.advance();
  if (good && function_.outputs.empty()) {
    in_.error(
        "no-body", ast_.place(name_),
        "the row function '" + function_.name + "' has no result; end it with 'out y: row T = …'");
    return false;
  }
  return good;
}

/// Says what expressions have, where one seems to go on as in another language.
bool RowParser::end_statement() {
  const Tok kind = in_.tok().kind;
  const bool goes_on = kind == Tok::lbracket || in_.here(ast::w_if) ||
                       (kind >= kFirstOperator && kind <= kLastOperator);
  if (in_.fresh() || !goes_on) return in_.end_statement();
  return in_.expected(
      "'+', '-', '*', '/' or the end of the statement (there is no other operator, "
      "and no index; a choice is 'if a < b then x else y')");
}

bool RowParser::statement() {
  if (in_.here(ast::w_let)) return let();
  if (at_text("out")) return out();
  return in_.expected("'let' or 'out'");
}

bool RowParser::let() {
  in_.advance();
  ast::Name name;
  if (!in_.declared_name(name)) return false;
  if (!exprs_.may_declare(name)) return false;
  const TextRange place = ast_.place(name);
  // Even after a mistake the name is known, so that each mistake is reported once.
  uint32_t node = kNoNode;
  const bool assigned = in_.expect(Tok::assign, "'='");
  if (assigned) {
    in_.set_fresh(false);
    node = exprs_.expr();
  }
  exprs_.names()[name.id] = {.node = node, .place = place, .used = node == kNoNode};
  if (node == kNoNode) return false;
  function_.lets.push_back({std::string(ast_.text(name)), node});
  return true;
}

bool RowParser::out() {
  in_.advance();
  ast::Name name;
  if (!in_.declared_name(name)) return false;
  const TextRange place = ast_.place(name);
  if (function_.outputs.size() == kMaxOutputs) {
    in_.error("too-many-elements", place,
              "a row function has at most " + std::to_string(kMaxOutputs) + " results");
    return false;
  }
  const auto [first, fresh] = outputs_.emplace(name.id, place);
  if (!fresh) {
    in_.error("redeclared", place, "'" + std::string(ast_.text(name)) + "' is declared twice")
        .notes.push_back({"the first is here", ast_.span(first->second)});
    return false;
  }
  Stored output{.name = std::string(ast_.text(name))};
  if (!exprs_.may_declare(name) || !read_stored(ast_, in_, output, false)) return false;
  if (!in_.expect(Tok::assign, "'='")) return false;
  in_.set_fresh(false);
  const uint32_t begin = in_.tok().place.begin;
  output.node = exprs_.expr();
  if (!nodes_.fits(output.node, output, in_.since(begin))) return false;
  function_.outputs.push_back(std::move(output));
  return true;
}

/// After a mistake in the statement that begins at byte `begin`: to the next line, or the end of
/// the function.
void RowParser::skip_statement(uint32_t begin) {
  in_.forget_brackets();
  while (in_.tok().kind != Tok::end && in_.tok().kind != Tok::rbrace &&
         (!in_.tok().newline || in_.tok().place.begin == begin)) {
    in_.tok().kind == Tok::lbrace ? in_.skip_braces() : in_.advance();
  }
}

/// After a mistake in the head: past the body, if it begins on this line.
bool RowParser::skip_body() {
  in_.forget_brackets();
  const auto next_row = [&] {
    in_.set_fresh(false);
    return in_.tok().newline && at_text("row");
  };
  while (in_.tok().kind != Tok::end && in_.tok().kind != Tok::lbrace && !next_row()) in_.advance();
  if (in_.tok().kind == Tok::lbrace) in_.skip_braces();
  return false;
}

void RowParser::warn_of_unused() {
  for (const auto& [symbol, known] : exprs_.names()) {
    if (known.used) continue;
    diagnostics_.warning("unused", ast_.span(known.place),
                         "'" + std::string(ast_.text(symbol)) + "' is not used");
  }
}

}  // namespace mscclc::rows
