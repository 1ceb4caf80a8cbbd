#include "tests/structure/cpp_syntax.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace mscclc::structure {

bool is_macro_name(std::string_view word) {
  return word.size() > 1 && std::all_of(word.begin(), word.end(), [](char c) {
           return c == '_' || std::isupper(static_cast<unsigned char>(c)) ||
                  std::isdigit(static_cast<unsigned char>(c));
         });
}

bool contains_word(Tokens tokens, Words words) {
  return std::ranges::any_of(tokens, [&](const Token& token) {
    return std::ranges::find(words, token.text) != words.end();
  });
}

[[noreturn]] void fail(size_t line, const std::string& what) {
  throw std::runtime_error("line " + std::to_string(line) + ": " + what);
}

size_t after_closing(Tokens tokens, size_t open) {
  const std::string_view left = tokens[open].text;
  const std::string_view right = left == "(" ? ")" : left == "[" ? "]" : "}";
  size_t depth = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].is(left)) ++depth;
    if (tokens[i].is(right) && --depth == 0) return i + 1;
  }
  fail(tokens[open].line, "nothing closes this " + std::string(left));
}

size_t after_angle(Tokens tokens, size_t open) {
  size_t depth = 0;
  for (size_t i = open; i < tokens.size();) {
    if (tokens[i].is("(") || tokens[i].is("{")) {
      i = after_closing(tokens, i);
      continue;
    }
    if (tokens[i].is("<")) ++depth;
    if (tokens[i].is(">") && --depth == 0) return i + 1;
    ++i;
  }
  fail(tokens[open].line, "nothing closes this <");
}

bool opens_template(Tokens tokens, size_t at) {
  if (!tokens[at].is("<") || at + 1 >= tokens.size() || tokens[at + 1].is("<")) return false;
  const Token& before = tokens[at - 1];
  return before.is_word() && !std::isdigit(static_cast<unsigned char>(before.text.front()));
}

}  // namespace mscclc::structure
