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
inline constexpr const char* kOverlapPrograms[] = {
    "allgather_gemm",     "allgather_gemm_copy_engine",
    "alltoall_gemm",      "alltoall_gemm_copy_engine",
    "gemm_reducescatter", "gemm_exchange_copy_engine",
    "gemm_allreduce"};

/// A plan of two ranks that does nothing but hand its input on, flag by flag: N blocks await flags
/// that are raised K times, and notify others. I: instances.
inline constexpr const char* kThrough = R"(
program    through
param      N = 3, K = 1, I = 1
external   flags made[N] of: input, raises: K
external   flags ready[N] of: output, bits: 64
collective sendrecv(ranks: 2, chunks: N, shift: 0)
launch     instances: I, policy: interleaved
rank r in 0..2 {
  tb c in 0..N {
    await made[c]
    copy output[c] <- input[c]
    notify ready[c]
  }
}
)";

using FlagDefines = std::vector<std::pair<std::string, std::string>>;

/// The text of one of them.
std::string overlap_text(const std::string& name);
/// The same text with flags that copies and the host may raise.
std::string of_system_scope(std::string text);
/// nullopt: reported.
std::optional<Program> flag_plan(const std::string& text, const FlagDefines& defines,
                                 Diagnostics& diagnostics);
/// REQUIRES: nothing is to be reported of it.
Program flag_plan(const std::string& text, const FlagDefines& defines = {});
/// `wanted` bytes of floats, or the next number that the program takes.
uint64_t message_for(const Program& program, uint64_t wanted);
/// Whether a call is in place: as `wanted`, where the program leaves that open.
bool in_place_for(const Program& program, bool wanted);
/// All that was reported.
std::string said_of_flags(const Diagnostics& diagnostics);

}  // namespace mscclc::testing
