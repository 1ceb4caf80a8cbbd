// Plain stores of a thread block that others do not see yet. A store is done when its thread, or
// one that has met it since, publishes or touches the bytes; when the kernel ends; or whenever
// chance has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/cpu/dice.h"

namespace mscclc::cuda::host {

class LateStores {
 public:
  static constexpr uint32_t kMaxBytes = 16;

  /// A thread of the block stores up to kMaxBytes. Stores of one group, not 0, are done together.
  void add(uint32_t thread, void* to, const void* from, uint32_t bytes, uint32_t group);
  /// The threads of the block have met: each knows of the stores of all.
  void meet() { ++meetings_; }
  /// Does the stores that a thread knows of; with bytes, those that touch them.
  void settle(uint32_t thread);
  void settle(uint32_t thread, const void* at, uint32_t bytes);
  /// Does one of them, and those before it that it must not overtake. False: there is none.
  bool do_any(Dice& dice);
  void do_all();
  size_t count() const { return list_.size(); }

 private:
  struct Store {
    uint32_t thread;
    uint32_t bytes, group;
    uint64_t meeting;
    uint8_t* to;
    uint8_t data[kMaxBytes];
  };
  bool knows(uint32_t thread, const Store& store) const {
    return store.thread == thread || store.meeting < meetings_;
  }
  static bool touch(const Store& store, const uint8_t* at, uint32_t bytes) {
    return store.to < at + bytes && at < store.to + store.bytes;
  }
  /// Does the stores for which pick(store) is true, in order.
  template <class Pick>
  void do_if(Pick pick);

  std::vector<Store> list_;       ///< in the order of making
  std::vector<uint32_t> groups_;  ///< that do_if() does; here to be allocated once
  uint64_t meetings_ = 0;
};

}  // namespace mscclc::cuda::host
