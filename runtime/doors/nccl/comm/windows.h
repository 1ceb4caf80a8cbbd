// Symmetric windows that plans reach at all ranks. A caller that registers one promises to use it
// at the same offset on all ranks in each call, so whether a call's buffers lie in them is the same
// on all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/doors/nccl/abi/abi.h"
#include "runtime/doors/nccl/comm/plan_calls.h"

namespace mscclc::nccl {

/// Thread safety: one thread at a time.
class Windows {
 public:
  void add(ncclWindow_t window, const void* buffer, const SharedMemory& memory);
  /// Forgets a window; its memory. nullopt: there is no such window.
  std::optional<SharedMemory> take(ncclWindow_t window);
  /// True if so many bytes lie in one window, on every rank. They are looked for in the one that
  /// was registered last.
  bool hold(const void* at, uint64_t bytes) const;
  bool empty() const { return known_.empty(); }

 private:
  struct KnownWindow {
    ncclWindow_t window;
    const uint8_t* begin;
    SharedMemory memory;
  };
  std::vector<KnownWindow> known_;
};

}  // namespace mscclc::nccl
