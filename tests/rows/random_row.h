// Random row functions, and programs of them, as text: right in names, types and limits, otherwise
// of any kind.
#pragma once

#include <string>

#include "executor/cpu/dice.h"
#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// A declaration of a row function of this name. `of_sum`: its first parameter can be a sum.
std::string random_row(Dice& dice, const std::string& name, bool of_sum = false);

/// An AllReduce in one shot of one such function, whose other parameters and results are externals,
/// some both. It has the parameters R, N (a multiple of 16), B and T: as plans/rows.
std::string random_row_program(Dice& dice, const std::string& name);

/// Reads the one declaration in a text that has no mistakes; fails the process otherwise.
Function read_one(const std::string& text);

}  // namespace mscclc::rows
