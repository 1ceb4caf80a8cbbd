#include "compiler/tokens/token_stream.h"

#include "ir/support/precondition.h"

namespace mscclc {

using ast::TextRange;

bool TokenStream::at_margin() const {
  const uint32_t at = tok_.place.begin - file_.base;
  return at == 0 || file_.text[at - 1] == '\n';
}

Diagnostic& TokenStream::expected_but(std::string_view what) {
  const uint32_t bad = lexer_.bad_token();
  if (bad >= last_end_ && bad <= tok_.place.begin) return unused_;  // reported as what it is
  TextRange place = tok_.place;
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
std::string TokenStream::shown(const Token& token) const {
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

bool TokenStream::expect(Tok kind, std::string_view what) { return accept(kind) || expected(what); }

bool TokenStream::expect(ast::Word word) {
  if (!here(word)) return expected("'" + std::string(ast_.text(word)) + "'");
  advance();
  return true;
}

bool TokenStream::expect_anywhere(ast::Word word) {
  if (tok_.symbol != word) return expect(word);
  advance();
  return true;
}

/// Passes the bracket that closes `opened`.
bool TokenStream::close(Tok kind, const Token& opened, std::string_view what) {
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

bool TokenStream::end_statement() {
  if (tok_.kind == Tok::semicolon) {
    advance();
    return true;
  }
  if (fresh_ || tok_.kind == Tok::end || tok_.kind == Tok::rbrace) return true;
  if (last_kind_ == Tok::rbrace) return true;  // a '}' ends a statement too
  return expected("the end of the statement");
}

/// Only at the beginning of a line: words that no expression continues with.
bool TokenStream::begins_statement(const Token& token) const {
  return token.kind == Tok::op || (token.kind == Tok::keyword && token.symbol <= ast::w_if);
}

/// Passes a block without looking at it. REQUIRES: at '{'.
void TokenStream::skip_braces() {
  precondition(tok_.kind == Tok::lbrace);
  int open = 0;
  do {
    open += tok_.kind == Tok::lbrace;
    open -= tok_.kind == Tok::rbrace;
    advance();
  } while (open > 0 && tok_.kind != Tok::end);
}

/// A name that is being declared. A reserved word is reported and taken all the same.
bool TokenStream::declared_name(ast::Name& out) {
  if (!at_word()) return expected("a name");
  if (ast::is_reserved(tok_.symbol)) {
    error("reserved-name", tok_.place,
          "'" + std::string(ast_.text(tok_.place)) +
              "' is a word of the language; choose another name");
  }
  out = take_name();
  return true;
}

/// What is called stands where words of the language do, so it may not have their names.
void TokenStream::callable_name(const Token& name) {
  if (name.symbol == ast::kNoSymbol || name.kind == Tok::name) return;
  if (ast::is_reserved(name.symbol)) return;  // reported as a declared name
  const char* what = name.kind == Tok::op         ? "an op"
                     : name.kind == Tok::function ? "a function"
                                                  : "a word of the language";
  error("reserved-name", name.place,
        "'" + std::string(ast_.text(name.place)) + "' is " + what + "; choose another name");
}

/// The content of a string, escapes resolved; `place` is what stands between the quotes.
bool TokenStream::string_value(std::string_view& out, TextRange& place) {
  if (!here(Tok::string)) return expected("a string");
  place = tok_.place;
  ++place.begin;
  out = ast_.text(place);
  if (out.ends_with('"')) {  // else it is unterminated, as reported
    out.remove_suffix(1);
    --place.end;
  }
  advance();
  if (out.find('\\') == std::string_view::npos) return true;
  char* copy = static_cast<char*>(ast_.arena().allocate(out.size()));
  size_t length = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const char next = i + 1 < out.size() ? out[i + 1] : ' ';
    copy[length++] = out[i] == '\\' && next == 'n' ? '\n' : out[i] == '\\' ? next : out[i];
    if (out[i] != '\\') continue;
    if (next != 'n' && next != '"' && next != '\\') {
      const uint32_t at = place.begin + static_cast<uint32_t>(i);
      error("bad-escape", {at, at + 1}, "strings know \\\", \\\\ and \\n only");
    }
    ++i;
  }
  out = {copy, length};
  return true;
}

bool TokenStream::not_in_ir(TextRange place, const std::string& what) {
  error("not-in-ir", place, "IR text has no " + what);
  return false;
}

}  // namespace mscclc
