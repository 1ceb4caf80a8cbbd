// Programs with row functions (programs/), compiled: for tests of whatever runs them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::testing {

using RowDefines = std::vector<std::pair<std::string, std::string>>;

/// Compiles a text that stands beside the programs, and may import what they do. REQUIRES: it has
/// no errors, and this runs in the repository root.
Program row_plan_of(const std::string& text, const RowDefines& defines);
/// The same of a program, by its name; `more` follows its text.
Program row_plan(const std::string& name, const RowDefines& defines, const std::string& more = "");

/// The names of the programs.
std::vector<std::string> row_programs();
/// Those of R ranks in whose calls of few rows some steps have nothing to do, or others as much as
/// what stands beside them.
std::vector<std::string> uneven_row_programs();

/// The same of plans/rows.
Program library_row_plan(const std::string& name, const RowDefines& defines);
/// Of those that only two ranks may run, by its name.
bool is_of_two_ranks(const std::string& name);
/// Those that so many ranks may run.
std::vector<std::string> library_row_programs(uint32_t ranks);

}  // namespace mscclc::testing
