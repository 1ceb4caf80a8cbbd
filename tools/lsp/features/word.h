// Words of a text, whatever they mean there.
#pragma once

#include <cstddef>
#include <string_view>

namespace mscclc::lsp {

/// A letter, a digit or '_'.
bool is_word_character(char c);

struct Word {
  size_t begin = 0;
  std::string_view text;
};
/// The word that has the byte, or ends right before it; empty: there is none, or it is in a
/// comment.
Word word_at(std::string_view text, size_t byte);
/// True if a '#' outside of strings comes before the byte on its line.
bool in_comment(std::string_view text, size_t byte);

}  // namespace mscclc::lsp
