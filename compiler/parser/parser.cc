// The frame of the parser: tokens, errors and the way on after them.
#include "compiler/parser/parser.h"

#include <utility>

#include "compiler/parser/parser_state.h"

namespace mscclc {

using ast::Place;

const ast::File* parse_file(const Sources& sources, FileId id, ast::Ast& ast,
                            Diagnostics& diagnostics) {
  ast::File* file = ast.add_file(id);
  if (file == nullptr) {
    diagnostics.error("file-too-large", {.file = id, .line = 1, .column = 1},
                      "the file is larger than 1 GiB");
    return nullptr;
  }
  return Parser(*file, ast, diagnostics).file() ? file : nullptr;
}

bool parse_define(FileId id, ast::Ast& ast, ast::Expr& out) {
  ast::File* file = ast.add_file(id);
  Diagnostics unused;
  return file != nullptr && Parser(*file, ast, unused).define(out);
}

bool Parser::define(ast::Expr& out) {
  const size_t mark = exprs_.mark();
  advance();
  if (!expr_list() || tok_.kind != Tok::end || lexer_.errors() > 0) return false;
  if (exprs_.mark() > mark + 1) {
    return list_node(out, ast::ExprKind::list, mark, since(file_.base));
  }
  out = exprs_.take(mark, ast_.arena())[0];
  return true;
}

bool Parser::file() {
  advance();
  while (tok_.kind != Tok::end) {
    unwinding_ = fresh_ = false;
    const uint32_t before = tok_.place.begin;
    if (tok_.kind == Tok::semicolon) {
      advance();
    } else if (tok_.kind == Tok::rbrace) {
      error("unmatched-brace", tok_.place, "'}' without a '{'");
      advance();
    } else if (const ast::Stmt* stmt = item()) {
      statements_.push(stmt);
      if (!end_statement()) recover(before);
    } else if (!unwinding_) {
      recover(before);
    }
  }
  file_.items = statements_.take(0, ast_.arena());
  return lexer_.errors() == 0;
}

bool Parser::at_margin() const {
  const uint32_t at = tok_.place.begin - file_.base;
  return at == 0 || file_.text[at - 1] == '\n';
}

// ---- errors --------------------------------------------------------------------------------

Diagnostic& Parser::expected_but(std::string_view what) {
  const uint32_t bad = lexer_.bad_token();
  if (bad >= last_end_ && bad <= tok_.place.begin) return unused_;  // reported as what it is
  Place place = tok_.place;
  if (fresh_ || tok_.kind == Tok::end) {
    const uint32_t end = file_.base + static_cast<uint32_t>(file_.text.size());
    place = {last_end_, std::min(last_end_ + 1, end)};
  }
  Diagnostic& d =
      error("expected", place, "expected " + std::string(what) + " before " + shown(tok_));
  if (here(Tok::colon) && brackets_ > 0) {
    d.notes.push_back({"a range is written with '..': the chunks 0 and 1 are [0..2]", {}});
  }
  return d;
}

/// What a message calls the present token.
std::string Parser::shown(const Token& token) const {
  constexpr size_t kLongest = 40;
  if (fresh_) return "the end of the line";
  if (token.kind == Tok::end) return "the end of the file";
  std::string_view text = ast_.text(token.place);
  if (text.size() <= kLongest) {
    return token.kind == Tok::string ? std::string(text) : "'" + std::string(text) + "'";
  }
  size_t cut = kLongest;
  while ((static_cast<uint8_t>(text[cut]) & 0xc0) == 0x80) --cut;  // not inside a character
  return "'" + std::string(text.substr(0, cut)) + "...'";
}

bool Parser::expect(Tok kind, std::string_view what) { return accept(kind) || expected(what); }

bool Parser::expect(ast::Word word) {
  if (!here(word)) return expected("'" + std::string(ast_.text(word)) + "'");
  advance();
  return true;
}

bool Parser::expect_anywhere(ast::Word word) {
  if (tok_.symbol != word) return expect(word);
  advance();
  return true;
}

/// Passes the bracket that closes `opened`.
bool Parser::close(Tok kind, const Token& opened, std::string_view what) {
  if (tok_.kind == kind) {
    close_bracket();
    return true;
  }
  Diagnostic& diagnostic = expected_but(what);
  if (tok_.newline || tok_.kind == Tok::end) {
    const std::string bracket(ast_.text(opened.place));
    diagnostic.notes.push_back({"the '" + bracket + "' is here", ast_.span(opened.place)});
  }
  return false;
}

bool Parser::end_statement() {
  if (tok_.kind == Tok::semicolon) {
    advance();
    return true;
  }
  if (fresh_ || tok_.kind == Tok::end || tok_.kind == Tok::rbrace) return true;
  if (last_kind_ == Tok::rbrace) return true;  // a '}' ends a statement too
  return expected("the end of the statement");
}

/// Only at the beginning of a line: words that no expression continues with.
bool Parser::begins_statement(const Token& token) const {
  return token.kind == Tok::op || (token.kind == Tok::keyword && token.symbol <= ast::w_if);
}

/// Goes on after the present statement: at its end, or at what must be the next one. Blocks on the
/// way are parsed, for the mistakes in them. `begin` is where the statement begins, so that it is
/// passed even if nothing of it was.
void Parser::recover(uint32_t begin) {
  int open = std::exchange(brackets_, 0);
  depth_ = 0;
  words_ = false;
  open_level_ = -1;
  bool first = tok_.place.begin == begin;
  while (tok_.kind != Tok::end && tok_.kind != Tok::rbrace && tok_.kind != Tok::semicolon) {
    if (tok_.newline && !first && (open == 0 || begins_statement(tok_))) break;
    first = false;
    if (tok_.kind == Tok::lbrace) {
      fresh_ = false;
      ast::Block unused;
      block(unused);
      if (unwinding_ || tok_.symbol != ast::w_else) return;
      continue;
    }
    open += tok_.kind == Tok::lparen || tok_.kind == Tok::lbracket;
    open -= tok_.kind == Tok::rparen || tok_.kind == Tok::rbracket;
    open = std::max(open, 0);
    advance();
  }
  fresh_ = tok_.newline;
}

/// Passes a block without looking at it. REQUIRES: at '{'.
void Parser::skip_braces() {
  int open = 0;
  do {
    open += tok_.kind == Tok::lbrace;
    open -= tok_.kind == Tok::rbrace;
    advance();
  } while (open > 0 && tok_.kind != Tok::end);
}

/// Reports that the '}' for `open` is missing and leaves all blocks.
void Parser::missing_brace(Place open) {
  unwinding_ = true;
  const Span at = ast_.span(unclosed_brace(open));
  fresh_ = false;
  Place place = tok_.place;
  if (tok_.kind == Tok::end) place = {last_end_ - 1, last_end_};
  error("missing-brace", place,
        "'}' missing for the '{' at " + std::to_string(at.line) + ":" + std::to_string(at.column));
}

/// The '{' that most likely lacks its '}': the first that was closed by a '}' further left than
/// its own line begins, or else `open`, which is the one by count.
Place Parser::unclosed_brace(Place open) {
  struct Open {
    Place place;
    uint32_t indent;
  };
  std::vector<Open> stack;
  Diagnostics unused;
  Lexer lexer(file_, ast_, unused);
  uint32_t indent = 0;
  Token token;
  for (lexer.next(token); token.place.begin < tok_.place.begin; lexer.next(token)) {
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
