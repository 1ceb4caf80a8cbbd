// A signal's round trip between two GPUs: rank 0 signals, rank 1 answers, and again. One thread on
// each, so that nothing but the signals is timed.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

namespace mscclc::bench {

/// How a signal is sent, and waited for.
enum class Signal : uint8_t {
  add,            ///< red.release.sys.add at the peer, ld.acquire.sys: what plans do
  store,          ///< one is added to a count here, st.release.sys of that at the peer
  kept_store,     ///< the same, with the count in a register
  fenced_store,   ///< fence.acq_rel.sys, then st.relaxed.sys
  relaxed_add,    ///< nothing is published: red.relaxed.sys.add, ld.relaxed.sys
  relaxed_store,  ///< st.relaxed.sys, ld.relaxed.sys
};
inline constexpr std::array kSignals = {Signal::add,         Signal::store,
                                        Signal::kept_store,  Signal::fenced_store,
                                        Signal::relaxed_add, Signal::relaxed_store};
const char* name(Signal signal);

/// One side of a game.
struct RoundTrips {
  uint64_t* arrived = nullptr;      ///< here, 0 at the beginning
  uint64_t* partner = nullptr;      ///< the partner's `arrived`
  uint64_t* sent = nullptr;         ///< here, 0 at the beginning
  uint64_t* nanoseconds = nullptr;  ///< here: what `timed` round trips took
  uint32_t untimed = 0, timed = 0;  ///< round trips
  bool serves = false;              ///< signals first
};

/// Starts one side on the current device.
cudaError_t launch_round_trips(Signal signal, const RoundTrips& side, cudaStream_t stream);

}  // namespace mscclc::bench
