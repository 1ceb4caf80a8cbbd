// Is a row function one that its parser might have made? Of functions that come as values.
#pragma once

#include <optional>
#include <string>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// What is wrong with it, as a sentence; nothing if nothing is. REQUIRES: nothing. Takes time in
/// proportion to the function.
std::optional<std::string> fault_of(const Function& function);

/// Sets `spread` and `group` of a value from those of its arguments, which come before it. False if
/// they do not go together, or the op is none. REQUIRES: arguments are in range.
bool set_spread(const Function& function, Node& node);

/// Can it be the name of a function, an external, a parameter, a result or a `let`?
bool is_row_name(std::string_view name);

/// How deep expressions go between values with names.
inline constexpr uint32_t kMaxNodeDepth = kMaxExprDepth - 4;

}  // namespace mscclc::rows
