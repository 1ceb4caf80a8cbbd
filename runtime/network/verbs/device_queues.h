// The queue pairs of a lane, and where the device reports what it has done: how they are made, and
// connected to the peer's.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "ir/support/result.h"
#include "runtime/network/verbs/adapter.h"
#include "runtime/network/verbs/control.h"
#include "runtime/network/verbs/resources/own_pages.h"
#include "runtime/network/verbs/send_queue.h"

namespace mscclc::verbs {

/// Thread safety: one thread at a time.
class DeviceQueues {
 public:
  /// Makes them. What the peer must know of them, to connect its own.
  [[nodiscard]] Result<Meeting> make(const Adapter& adapter, SignalMode mode);
  /// Connects them to those of the peer. REQUIRES: make().
  [[nodiscard]] Result<void> connect(const Adapter& adapter, const Meeting& theirs);

  std::deque<SendQueue>& all() { return queues_; }
  const std::deque<SendQueue>& all() const { return queues_; }
  /// nullptr: there is none of this number.
  SendQueue* find(uint32_t number);
  /// What the device has done. nullptr: make() has not come to it.
  CompletionQueue* events() const { return events_.get(); }
  /// Ends the queue pairs.
  void clear() { queues_.clear(); }

 private:
  /// Where the device writes what was there before it added; it is not read.
  const OwnPages<uint64_t> old_values_{1};
  std::shared_ptr<const MemoryRegion> old_values_key_;
  std::shared_ptr<CompletionQueue> events_;
  std::vector<QueueEnd> own_;
  std::deque<SendQueue> queues_;
};

}  // namespace mscclc::verbs
