// What collectives written by hand have in common as contenders: scratch that peers have mapped,
// and how many blocks a call has.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "tools/bench/kernels/kernels.h"
#include "tools/bench/measure/contender.h"
#include "tools/bench/measure/timing.h"

namespace mscclc::bench {

inline constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;

/// Scratch of a rank, mapped by all, and the epochs of its blocks after it.
class HandwrittenScratch {
 public:
  /// Collective. False: reported.
  [[nodiscard]] bool open(Communicator& communicator, uint64_t bytes, uint32_t blocks,
                          Diagnostics& diagnostics);
  /// Collective: forgets all calls. Flags of calls of another size would stand where others are
  /// awaited.
  [[nodiscard]] bool clear(Diagnostics& diagnostics);
  /// Byte `offset` of everyone's.
  PeerPointers at(uint64_t offset) const;
  uint32_t* epochs() const { return reinterpret_cast<uint32_t*>(memory_->data() + bytes_); }

 private:
  Communicator* communicator_ = nullptr;
  uint64_t bytes_ = 0;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<PeerMemory> peers_;
};

/// Blocks of `threads` for so many: at most as many as an H200 has multiprocessors, and, as ranks
/// wait for one another, as the rank's GPU has.
inline uint32_t blocks_for(uint64_t threads_needed, uint32_t threads, const Device& device) {
  const uint64_t most = std::min<uint64_t>(132, device.multiprocessors());
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((threads_needed + threads - 1) / threads, 1, most));
}

/// A contender that has been made, opened; nullptr: there are no kernels for so many ranks, or it
/// cannot be opened (reported).
template <class Made>
[[nodiscard]] std::unique_ptr<Contender> opened(std::unique_ptr<Made> made, uint32_t ranks,
                                                Diagnostics& diagnostics) {
  if (ranks != 2 && ranks != 4 && ranks != 8) {
    diagnostics.error("ranks", {}, "kernels by hand are for 2, 4 or 8 ranks");
    return nullptr;
  }
  return made->open(diagnostics) ? std::move(made) : nullptr;
}

}  // namespace mscclc::bench
