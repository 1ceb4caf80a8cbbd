// A block's push into the queue of its proxy: a thread on the GPU writes a request to host memory,
// a thread of the host sees that all of it has come, and answers. Only the way is timed, no work.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

namespace mscclc::bench {

/// How a request is written.
enum class Push : uint8_t {
  one_store,     ///< 16 bytes
  two_stores,    ///< 32 bytes, as blocks do where nothing is to be published
  fenced_stores  ///< a fence for the system before them, as before puts and most signals
};
inline constexpr std::array kPushes = {Push::one_store, Push::two_stores, Push::fenced_stores};
const char* name(Push push);
/// Words of 8 bytes that it writes.
constexpr uint32_t words_of(Push push) { return push == Push::one_store ? 2 : 4; }

struct Pushes {
  uint64_t* slot = nullptr;          ///< of the host, four words, all 0 at the beginning
  const uint64_t* answer = nullptr;  ///< of the host, 0 at the beginning
  uint64_t* nanoseconds = nullptr;   ///< of the host: what `timed` pushes and answers took
  uint32_t untimed = 0, timed = 0;
};

/// Starts to push on the current device; push number i writes i into each word.
cudaError_t launch_pushes(Push push, const Pushes& pushes, cudaStream_t stream);

}  // namespace mscclc::bench
