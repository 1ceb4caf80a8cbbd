// What a timeline shows of one call: when the steps of each thread block began and ended, and which
// of them waited for which. Times in nanoseconds since the call began.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executor/cost/timeline.h"
#include "ir/program/program.h"

namespace mscclc::timeline {

/// A step of a thread block. It waits in [begin, work) and [idle, back), and works in between.
struct Slice {
  uint32_t rank = 0, block = 0;
  uint32_t source = 0;  ///< the op's index among the rank's ops in the IR
  uint32_t round = 0;   ///< of a pipeline
  uint32_t record = 0;  ///< the same step has the same number in predictions and measurements
  device::StepKind kind = device::StepKind::sync;
  uint64_t bytes = 0;  ///< that it stores
  double begin = 0, work = 0, idle = 0, back = 0, end = 0;
  double waited() const { return (work - begin) + (back - idle); }
};

/// What one step had to wait for, and another sent.
struct Arrow {
  uint32_t from = 0, to = 0;  ///< slices
  bool packets = false;
  double left = 0, came = 0;
};

/// A part of the critical path.
struct PathPart {
  uint32_t slice = kNone;  ///< kNone: the launch
  std::string_view cause;
  double begin = 0, end = 0;
};

struct Trace {
  bool predicted = false;
  std::string how;  ///< "predicted for 4xH200 (measured figures)"
  double end = 0;
  std::vector<Slice> slices;
  std::vector<Arrow> arrows;   ///< of what was waited for
  std::vector<PathPart> path;  ///< from the call's begin to its end
};

/// What all traces of a call have in common.
struct CallFacts {
  const Program& program;
  std::string title;  ///< "allreduce_2shot: allreduce of 1 MiB (f32) over 8 ranks"
};

/// Steps that a timeline shows at most: what a browser can hold.
inline constexpr size_t kMaxSlices = 300'000;

/// "reduce", as the author wrote the op of a step.
std::string_view op_name(const Program& program, const Slice& slice);
/// What a step does, for its colour: "packets", "moves", "sums", "signals", "waits" or "meets".
std::string_view class_of(const Slice& slice);

}  // namespace mscclc::timeline
