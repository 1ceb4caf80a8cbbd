// A queue pair connected to itself: what it is asked for the device does to memory of this rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "ir/support/result.h"
#include "runtime/network/verbs/adapter.h"
#include "runtime/network/verbs/resources/own_pages.h"

namespace mscclc::verbs {

/// Thread safety: one thread at a time.
class LoopPair {
 public:
  /// `access`: what orders may do (ibv_access_flags).
  static Result<std::unique_ptr<LoopPair>> make(const Adapter& adapter, int access);
  /// Carries out one order, and waits for it. What it brings back, up to 8 bytes, is in word(). An
  /// error begins with `what`.
  Result<void> carry_out(ibv_send_wr order, uint32_t bytes, const char* what);
  uint64_t word() const { return word_[0]; }

 private:
  explicit LoopPair(std::chrono::seconds patience) : patience_(patience) {}

  const std::chrono::seconds patience_;
  const OwnPages<uint64_t> word_{1};
  std::shared_ptr<const MemoryRegion> region_;  ///< of the word
  std::shared_ptr<CompletionQueue> done_;
  std::unique_ptr<QueuePair> pair_;  ///< both ends of its connection
};

}  // namespace mscclc::verbs
