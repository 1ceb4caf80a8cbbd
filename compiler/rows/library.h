// The row functions that are built in, as text: what follows an AllReduce in models.
#pragma once

#include <string_view>
#include <vector>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// Declarations, each below a comment that says what it computes.
std::string_view library_text();

/// The same, read.
std::vector<Function> library();

/// One of them. REQUIRES: there is one of this name.
Function library_function(std::string_view name);

}  // namespace mscclc::rows
