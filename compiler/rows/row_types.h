// The words of row functions: types, kinds, and lists of them for messages.
#pragma once

#include <string>
#include <string_view>

#include "ir/rows/row_function.h"
#include "ir/rows/row_wire.h"

namespace mscclc::rows {

/// "'abs', 'sqrt' …": all that can be called.
std::string function_words();
std::string type_words();
/// Of arguments, or of results.
std::string kind_words(bool input);

}  // namespace mscclc::rows
