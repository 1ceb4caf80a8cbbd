// The way on after a mistake in a statement.
#include <vector>

#include "compiler/parser/statement_parser.h"

namespace mscclc {

using ast::TextRange;

/// Goes on after the present statement: at its end, or at what must be the next one. Blocks on the
/// way are parsed, for the mistakes in them. `begin` is where the statement begins, so that it is
/// passed even if nothing of it was.
void StatementParser::recover(uint32_t begin) {
  int open = in_.forget_brackets();
  exprs_.reset();
  bool first = in_.tok().place.begin == begin;
  while (in_.tok().kind != Tok::end && in_.tok().kind != Tok::rbrace &&
         in_.tok().kind != Tok::semicolon) {
    if (in_.tok().newline && !first && (open == 0 || in_.begins_statement(in_.tok()))) break;
    first = false;
    if (in_.tok().kind == Tok::lbrace) {
      in_.set_fresh(false);
      ast::Block unused;
      block(unused);
      if (unwinding_ || in_.tok().symbol != ast::w_else) return;
      continue;
    }
    open += in_.tok().kind == Tok::lparen || in_.tok().kind == Tok::lbracket;
    open -= in_.tok().kind == Tok::rparen || in_.tok().kind == Tok::rbracket;
    open = std::max(open, 0);
    in_.advance();
  }
  in_.set_fresh(in_.tok().newline);
}

/// Reports that the '}' for `open` is missing and leaves all blocks.
void StatementParser::missing_brace(TextRange open) {
  unwinding_ = true;
  const Span at = ast_.span(unclosed_brace(open));
  in_.set_fresh(false);
  TextRange place = in_.tok().place;
  if (in_.tok().kind == Tok::end) place = {in_.last_end() - 1, in_.last_end()};
  in_.error(
      "missing-brace", place,
      "'}' missing for the '{' at " + std::to_string(at.line) + ":" + std::to_string(at.column));
}

/// The '{' that most likely lacks its '}': the first that was closed by a '}' further left than
/// its own line begins, or else `open`, which is the one by count.
TextRange StatementParser::unclosed_brace(TextRange open) {
  struct Open {
    TextRange place;
    uint32_t indent;
  };
  std::vector<Open> stack;
  Diagnostics unused;
  Lexer lexer(file_, ast_, unused);
  uint32_t indent = 0;
  Token token;
  for (lexer.next(token); token.place.begin < in_.tok().place.begin; lexer.next(token)) {
    const bool first = token.newline || token.place.begin == file_.base;
    if (first) indent = ast_.span(token.place).column;
    if (token.kind == Tok::lbrace) stack.push_back({token.place, indent});
    if (token.kind == Tok::rbrace && !stack.empty()) {
      if (first && indent < stack.back().indent) return stack.back().place;
      stack.pop_back();
    }
  }
  return open;
}

}  // namespace mscclc
