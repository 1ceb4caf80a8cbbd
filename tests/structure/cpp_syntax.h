// What readers of C++ sources share: words, and where brackets close.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "tests/structure/tokens.h"

namespace mscclc::structure {

using Tokens = std::span<const Token>;

inline const std::set<std::string_view> kTypeKeywords = {"class", "struct", "union", "enum"};
/// Words that a group in parentheses belongs to, before the name of what is declared.
inline const std::set<std::string_view> kWithParentheses = {"__launch_bounds__", "__attribute__",
                                                            "alignas", "explicit", "decltype"};

using Words = std::initializer_list<std::string_view>;

bool is_macro_name(std::string_view word);

/// Is one of the tokens one of these words?
bool contains_word(Tokens tokens, Words words);

/// Throws std::runtime_error, with the line.
[[noreturn]] void fail(size_t line, const std::string& what);

/// The index after the bracket that closes the one at `open`.
size_t after_closing(Tokens tokens, size_t open);

/// The same for the angle bracket of a template. Parentheses inside are skipped.
size_t after_angle(Tokens tokens, size_t open);

/// Is this `<` the begin of template arguments, rather than an operator?
bool opens_template(Tokens tokens, size_t at);

}  // namespace mscclc::structure
