#include "tools/lsp/features/word.h"

namespace mscclc::lsp {

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool in_comment(std::string_view text, size_t byte) {
  const size_t line = byte == 0 ? 0 : text.rfind('\n', byte - 1) + 1;
  bool in_string = false;
  for (size_t at = line; at < byte && at < text.size(); ++at) {
    if (text[at] == '\\' && in_string) {
      ++at;
    } else if (text[at] == '"') {
      in_string = !in_string;
    } else if (text[at] == '#' && !in_string) {
      return true;
    }
  }
  return false;
}

Word word_at(std::string_view text, size_t byte) {
  if (byte > text.size() || in_comment(text, byte)) return {};
  size_t begin = byte, end = byte;
  while (begin > 0 && is_word_character(text[begin - 1])) --begin;
  while (end < text.size() && is_word_character(text[end])) ++end;
  return {begin, text.substr(begin, end - begin)};
}

}  // namespace mscclc::lsp
