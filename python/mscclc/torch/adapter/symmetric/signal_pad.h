// Signals between ranks: words of symmetric memory.
//
// In torch's layout of signal pads, word channel * ranks + r of a rank's pad is set to 1 by rank r
// and back to 0 by its owner, so pads are zeros again when every signal has been waited for. Those
// of windows are counted: word r is written only by rank r, which never waits.
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace mscclc::torch_adapter {

/// Which rank signals, where, and how long a wait may take.
struct SignalLimit {
  std::chrono::milliseconds timeout{0};  ///< 0: none; GPUs have none
  std::function<void()> check;           ///< throws where peers will not come any more
};

/// Makes a word `to` once it is `from`: on the host at once, waiting; on a GPU on its current
/// stream, after all that is on it.
void change_signal(const c10::Device& device, uint32_t* word, uint32_t from, uint32_t to,
                   const SignalLimit& limit);

/// Makes a word `count`, after all that was written before: on the host at once, on a GPU on its
/// current stream.
void count_signal(const c10::Device& device, uint32_t* word, uint32_t count);
/// Until a word has come to `count`; the same.
void await_signal(const c10::Device& device, uint32_t* word, uint32_t count,
                  const SignalLimit& limit);

}  // namespace mscclc::torch_adapter
