// Random row functions, as text: right in names, types and limits, otherwise of any kind.
#pragma once

#include <string>

#include "executor/cpu/dice.h"
#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// A declaration of a row function of this name.
std::string random_row(Dice& dice, const std::string& name);

/// Reads the one declaration in a text that has no mistakes; fails the process otherwise.
Function read_one(const std::string& text);

}  // namespace mscclc::rows
