// Brackets among the tokens of a C++ source: where each one closes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tests/structure/tokens.h"

namespace mscclc::structure {

using Tokens = std::span<const Token>;

/// Throws std::runtime_error, with the line.
[[noreturn]] void fail(size_t line, const std::string& what);

/// The index after the bracket that closes the one at `open`.
size_t after_closing(Tokens tokens, size_t open);

/// The same for the angle bracket of a template. Parentheses inside are skipped.
size_t after_angle(Tokens tokens, size_t open);

/// Is this `<` the begin of template arguments, rather than an operator?
bool opens_template(Tokens tokens, size_t at);

}  // namespace mscclc::structure
