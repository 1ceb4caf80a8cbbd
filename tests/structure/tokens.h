// C++ source as tokens, without comments and preprocessor lines.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace mscclc::structure {

struct Token {
  std::string_view text;  ///< `"` for every string
  size_t line = 0;
  std::string_view spelt = {};  ///< as it stands in the source: a string with its quotes

  bool is(std::string_view other) const { return text == other; }
  /// A name, keyword or number.
  bool is_word() const;
};

/// Names, numbers, `::`, `->`, strings, and all other characters one by one.
std::vector<Token> tokens(std::string_view source);

}  // namespace mscclc::structure
