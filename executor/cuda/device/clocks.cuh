// How a block stamps when it began its steps (executor/stamps.h). Whether it does is in the
// parameters of the launch, which all threads read as a constant: a launch without stamps has one
// comparison for each step, and nothing to wait for.
#pragma once

#include "executor/cuda/device/access.cuh"
#include "executor/launch.h"
#include "executor/stamps.h"

namespace mscclc::cuda {

using device::LaunchPlan;

/// Of a block, in shared memory; its first thread's alone.
struct BlockClock {
  uint64_t began;  ///< in ticks
  uint32_t stamps;

  __device__ void begin_clock(const LaunchPlan& plan) {
    if (!stamps_on(plan)) return;
    uint64_t* const row = row_of(plan);
    began = clock_ticks();
    stamps = 0;
    row[device::kStampsDue] = 0;
    row[device::kStampsEnded] = 0;
    row[device::kStampsBegan] = nanoseconds();
  }
  /// `what`: StampAt, or the kind of a step.
  __device__ void stamp_clock(const LaunchPlan& plan, uint32_t what, uint32_t source = 0) {
    if (!stamps_on(plan)) return;
    const uint32_t at = device::kStampHead + stamps++;
    if (at >= plan.stamp_words) return;
    row_of(plan)[at] = device::stamp_word(what, source, clock_ticks() - began);
  }
  __device__ void end_clock(const LaunchPlan& plan) {
    if (!stamps_on(plan)) return;
    uint64_t* const row = row_of(plan);
    row[device::kStampsDue] = stamps;
    row[device::kStampsTicks] = clock_ticks() - began;
    row[device::kStampsEnded] = nanoseconds();
  }

 private:
  /// Without the comparison (--define=stamps=off) it can be measured what that costs.
  __device__ static bool stamps_on(const LaunchPlan& plan) {
#ifdef MSCCLC_NO_STAMPS
    return false;
#else
    return plan.stamps != nullptr && threadIdx.x == 0;
#endif
  }
  __device__ static uint64_t* row_of(const LaunchPlan& plan) {
    return plan.stamps + uint64_t{blockIdx.x} * plan.stamp_words;
  }
};

}  // namespace mscclc::cuda
