// The ways in which the runs of a GEMM that overlaps may be made: which of them are worth timing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/overlap/choice.h"

namespace mscclc::tune {

/// A backend, and what it takes.
struct GemmWay {
  std::string_view backend;
  uint32_t chunks = 0, budget = 0;
  bool operator==(const GemmWay&) const = default;
};
/// "copy_engine, chunks 2, budget 1", as 'mscclc select' has it.
std::string text_of(const GemmWay& way);
/// What makes the runs so.
OverlapConfig in_way(const OverlapConfig& shape, const GemmWay& way);

/// `serial` first.
struct GemmWays {
  std::vector<GemmWay> ways;
  std::vector<std::string> left_out;  ///< those that cannot serve, and why
};
/// Of a shape that check_config() takes. `facts`: of the device and the job; where NCCL is missing,
/// nothing more is said of it.
GemmWays ways_of(const OverlapConfig& shape, const overlap::ChoiceFacts& facts);

}  // namespace mscclc::tune
