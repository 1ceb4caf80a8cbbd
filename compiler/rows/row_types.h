// The words of row functions: types, kinds, and lists of them for messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

std::optional<Type> find_type(std::string_view text);
std::optional<Kind> find_kind(std::string_view text);
/// "'abs', 'sqrt' …": all that can be called.
std::string function_words();
std::string type_words();
/// Of arguments, or of results.
std::string kind_words(bool input);

}  // namespace mscclc::rows
