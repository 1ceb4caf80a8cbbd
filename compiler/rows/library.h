// The row functions that are built in, those of plans/rows/functions.mscl: what follows an
// AllReduce in models.
#pragma once

#include <string_view>
#include <vector>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// The file that a program imports which has none of this name beside it.
inline constexpr std::string_view kLibraryFile = "functions.mscl";

/// Declarations, each below a comment that says what it computes.
std::string_view library_text();

/// The same, read.
std::vector<Function> library();

/// One of them. REQUIRES: there is one of this name.
Function library_function(std::string_view name);

}  // namespace mscclc::rows
