// Row functions as text, which their parser reads as the same function.
#pragma once

#include <string>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// The declaration, in the canonical layout: all `let` before all `out`, no parentheses that are
/// not needed, and no second name for one value. Printing what was read from this gives it again.
std::string print(const Function& function);

/// A number of f32 as programs write it, so that reading gives its bits again. REQUIRES: finite,
/// not negative.
std::string print_number(float value);

}  // namespace mscclc::rows
