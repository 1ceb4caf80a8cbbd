// Makes the orders of a lane for what it is to put and signal: where in the peer's memory each
// goes, and over which queue pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/network/exposed_memory.h"
#include "runtime/network/verbs/control.h"
#include "runtime/network/verbs/send_queue.h"
#include "runtime/network/verbs/staging.h"

namespace mscclc::verbs {

/// Memory of the peer is divided into blocks of so many bytes; each has its queue pair.
constexpr uint64_t kBlock = Staging::kMax;

/// Memory that it names has a device key. Thread safety: one thread at a time.
class OrderMaker {
 public:
  explicit OrderMaker(SignalMode mode) : mode_(mode) {}
  /// `records`: of the peer, for messages over its first queue; the next follow. REQUIRES: once,
  /// before what follows.
  void open(size_t queues, const DeviceKey& records);

  SignalMode mode() const { return mode_; }
  /// Over which the latest order goes.
  size_t queue() const { return queue_; }
  /// Messages made so far.
  uint64_t messages() const { return messages_; }

  /// The first order of a put to bytes `at` to `end` of memory; its source is still to be said.
  /// REQUIRES: at < end.
  Work put(const NamedMemory& memory, uint64_t at, uint64_t end);
  /// Says that such an order has come to staging memory.
  Work landing(const NamedMemory& memory, uint64_t at, uint64_t bytes);
  /// Sets the count at byte `at` to a value.
  Work signal(const NamedMemory& memory, uint64_t at, uint64_t value);

 private:
  Work add(const NamedMemory& memory, uint64_t at, uint64_t value);
  Work message(Work::What what, const Record& record);

  const SignalMode mode_;
  DeviceKey records_;
  std::vector<uint64_t> next_record_;    ///< by queue
  size_t queue_ = 0;                     ///< of the latest put
  std::map<uint64_t, uint64_t> counts_;  ///< what was signalled last, by address
  uint64_t messages_ = 0;
};

}  // namespace mscclc::verbs
