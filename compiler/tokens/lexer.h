// Text to tokens, one at a time, without memory of its own. The newline rule is the parser's: a
// token says whether a newline came before it, the parser knows whether that ends a statement.
//
// Also reports what is wrong with single tokens: characters, strings, numbers and units, encoding;
// each time it continues with a suitable token, so that one mistake is reported once.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "compiler/ast/ast.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// Kinds of token. Binary operators come together (first_operator … last_operator).
enum class Tok : uint8_t {
  end,
  name,      ///< no word of the language
  keyword,   ///< without a kind of its own below
  function,  ///< min, max …
  op,        ///< put, wait …
  integer,
  decimal,  ///< 1.5, 1e-5: in row functions; its value is in its text
  string,
  lparen,
  rparen,
  lbracket,
  rbracket,
  lbrace,
  rbrace,
  comma,
  colon,
  semicolon,
  dot,
  at,
  arrow,
  assign,
  not_,
  or_,
  and_,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  in_,
  except,
  range,
  add,
  sub,
  mul,
  div,
  mod,
  pow,
  shl,
  shr,
  bit_and,
  bit_or,
  bit_xor,
  comment,  ///< only if asked for
};
inline constexpr Tok kFirstOperator = Tok::or_, kLastOperator = Tok::bit_xor;

struct Token {
  Tok kind = Tok::end;
  bool newline = false;                 ///< a newline precedes this token
  ast::Symbol symbol = ast::kNoSymbol;  ///< of words
  ast::TextRange place;
  uint64_t value = 0;  ///< of integers: at most 2^63, which is valid only after a '-'
};

class Lexer {
 public:
  /// `comments`: give comments as tokens (for the formatter) instead of skipping them.
  Lexer(const ast::File& file, ast::Ast& ast, Diagnostics& diagnostics, bool comments = false);

  /// Makes `out` the next token; at the end of the text again and again Tok::end.
  void next(Token& out);

  /// Reports an error. After too many the text ends here, so that hostile text costs nothing.
  Diagnostic& error(std::string code, ast::TextRange place, std::string message);
  int errors() const { return errors_; }
  /// Where the last error that the lexer itself reported begins.
  uint32_t bad_token() const { return bad_token_; }

 private:
  ast::TextRange place(const char* begin) const {
    return {base_ + static_cast<uint32_t>(begin - begin_),
            base_ + static_cast<uint32_t>(at_ - begin_)};
  }
  void finish(Token& out, Tok kind, const char* begin) const {
    out.kind = kind;
    out.place = place(begin);
  }
  void word(Token& out, const char* begin);
  void integer(Token& out, const char* begin);
  void long_integer(Token& out, const char* begin);
  bool decimal(Token& out, const char* begin);
  void string(Token& out, const char* begin);
  void wrong_arrow(Token& out, const char* begin);
  void punctuation(Token& out, const char* begin);
  uint64_t unit(const char* begin);
  Diagnostic& lexical(std::string code, ast::TextRange place, std::string message) {
    bad_token_ = place.begin;
    return error(std::move(code), place, std::move(message));
  }
  void skip_text(char stop);
  void unknown_character(const char* begin);
  bool utf8_character();

  ast::Ast& ast_;
  Diagnostics& diagnostics_;
  uint32_t base_;
  const char *begin_, *at_, *end_;
  bool comments_;
  bool bad_encoding_ = false;  // already reported
  uint32_t bad_token_ = UINT32_MAX;
  int errors_ = 0;
};

/// Errors of one file that are reported before the compiler gives up on it.
inline constexpr int kMaxErrors = 200;

}  // namespace mscclc
