// Notices that a device does nothing although it has orders, and reports no error: some retry
// forever (rdma_rxe does, if MSCCLC_IB_RETRY_CNT is 7), and so does any whose peer is not ready.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "runtime/network/threads/reactor.h"
#include "runtime/support/fd.h"

namespace mscclc::verbs {

/// Thread safety: one thread at a time; `handler` is called on the reactor's.
class StallWatch {
 public:
  /// `patience`: after which a device is taken for dead.
  explicit StallWatch(std::chrono::seconds patience) : patience_(patience) {}

  /// Calls `handler` each second while it runs. False: the system refuses; errno says why.
  /// REQUIRES: reactor.hold().
  [[nodiscard]] bool open(net::Reactor& reactor, std::function<void()> handler);
  /// REQUIRES: reactor.hold().
  void close(net::Reactor& reactor);
  /// Orders have been given. Costs nothing while it runs.
  void start();
  /// For the handler: nothing has been done for as long as the patience. `pending`: there are
  /// orders that are not done; `first`: the number of the first one. Without any it sleeps until
  /// start().
  [[nodiscard]] bool is_dead(bool pending, uint64_t first);

 private:
  void run(bool on);

  const std::chrono::seconds patience_;
  Fd timer_;
  net::Reactor::Token token_ = 0;
  bool runs_ = false;
  uint64_t first_ = 0;
  std::chrono::seconds quiet_{0};
};

}  // namespace mscclc::verbs
