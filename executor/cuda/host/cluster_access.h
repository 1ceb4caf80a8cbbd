// What the CUDA blocks of a cluster do together (executor/cuda/device/cluster.cuh), for device code
// that is compiled for the host, where the launch says how many they are.
#pragma once

#include "executor/cuda/host/grid.h"

#define MSCCLC_CLUSTER_BOUNDS(threads)

namespace mscclc::cuda {

inline constexpr bool kHasClusters = true;
inline uint32_t cluster_blocks() { return host::Gpu::get().here().cluster_blocks; }

/// As an mbarrier counts: a phase ends once its one arrival and all bytes have come.
struct SharedFloats {
  float of_warp[2][32];
  uint32_t phases[2];    ///< that have ended
  uint32_t expected[2];  ///< arrivals in this one
  int64_t bytes[2];      ///< that are to come; below 0: that came ahead of the arrival
  unsigned long long left[2];
};

inline void meet_cluster() {
  if (cluster_blocks() > 1) host::Gpu::get().meet_cluster();
}
inline void leave_cluster() { meet_cluster(); }

inline void prepare(SharedFloats& floats) {
  for (uint32_t turn = 0; turn < 2; ++turn) {
    floats.phases[turn] = floats.expected[turn] = 0;
    floats.left[turn] = floats.bytes[turn] = 0;
  }
}
inline void end_phase(SharedFloats& floats, uint32_t turn) {
  host::Gpu::get().note_change();
  if (floats.expected[turn] == 0 || floats.bytes[turn] != 0) return;
  floats.expected[turn] = 0;
  ++floats.phases[turn];
}
inline void send(SharedFloats&, uint32_t turn, uint32_t warp, float x, uint32_t part) {
  host::Gpu::get().step();
  auto& there = host::shared_of_part<SharedFloats>(part);
  there.of_warp[turn][warp] = x;
  there.bytes[turn] -= sizeof x;
  end_phase(there, turn);
}
inline void expect(SharedFloats& floats, uint32_t turn, uint32_t bytes) {
  host::Gpu::get().step();
  floats.expected[turn] = 1;
  floats.bytes[turn] += bytes;
  end_phase(floats, turn);
}
inline bool have_come(const SharedFloats& floats, uint32_t turn, uint32_t parity) {
  return (floats.phases[turn] & 1) != parity;
}

}  // namespace mscclc::cuda
