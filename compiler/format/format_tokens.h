// The tokens of a text as the formatter sees them: comments apart, braces matched, and how much
// space the canonical form puts between two tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/tokens/lexer.h"

namespace mscclc {

struct FormatToken {
  Tok kind = Tok::end;
  uint8_t spaces = 1;      ///< before it, if it follows another token on its line
  bool breakable = false;  ///< a long line may be broken in front of it
  bool separated = false;  ///< a ';' stands in front; it is no token here
  uint8_t newlines = 0;    ///< in front, in the text; 2 for more
  uint16_t brackets = 0;   ///< ( and [ around it
  uint32_t match = 0;      ///< of '{' and '}': the other one
  ast::Symbol symbol = ast::kNoSymbol;
  std::string_view text;
};

struct Comment {
  uint32_t before = 0;   ///< the token that follows
  uint8_t newlines = 0;  ///< in front; 0: it trails the line
  std::string_view text;
};

struct FormatTokens {
  std::vector<FormatToken> tokens;  ///< ends with Tok::end
  std::vector<Comment> comments;
  /// One past the last token of the statement that begins at `at`.
  uint32_t statement_end(uint32_t at) const;
};

/// REQUIRES: the text has no syntax error.
FormatTokens format_tokens(const ast::File& file, ast::Ast& ast);

}  // namespace mscclc
