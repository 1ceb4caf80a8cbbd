// Programs with flags as plans, for tests.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc::testing {

/// The library's, in plans/overlap.
inline constexpr const char* kOverlapPrograms[] = {"allgather_gemm", "alltoall_gemm",
                                                   "gemm_reducescatter", "gemm_allreduce"};

using FlagDefines = std::vector<std::pair<std::string, std::string>>;

/// The text of one of them.
std::string overlap_text(const std::string& name);
/// nullopt: reported.
std::optional<Program> flag_plan(const std::string& text, const FlagDefines& defines,
                                 Diagnostics& diagnostics);
/// REQUIRES: nothing is to be reported of it.
Program flag_plan(const std::string& text, const FlagDefines& defines = {});
/// All that was reported.
std::string said_of_flags(const Diagnostics& diagnostics);

}  // namespace mscclc::testing
