// Messages of two ranks by plans: each is a broadcast of a communicator that only its two ranks
// have. There is one for each direction, so that what goes one way waits for nothing that goes
// another; the first message that goes that way makes it, together with the peer.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/doors/nccl/comm/plan_calls.h"

namespace mscclc::nccl {

struct Comm;

/// The messages from one rank to another. Thread safety: one thread at a time, except for abort()
/// of its communicator.
struct PeerRoute {
  uint32_t from = 0, to = 0;
  std::shared_ptr<Device> device;  ///< of its own: routes are made and prepared at the same time
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<PlanCalls> plans;
  StreamHandle stream = nullptr;  ///< where its messages run, beside those of other routes
  bool is_ordered = false;        ///< the communicator's StreamChain has met the stream

  PeerRoute() = default;
  ~PeerRoute();
  PeerRoute(const PeerRoute&) = delete;
  PeerRoute& operator=(const PeerRoute&) = delete;
};

/// Of one communicator, which outlives it. Thread safety: any thread; a route is for one at a time.
class Messages {
 public:
  explicit Messages(const Comm& comm) : comm_(comm) {}

  /// nullptr: no message has gone this way yet.
  PeerRoute* find(uint32_t from, uint32_t to) const;
  /// The same; makes it if there is none, which waits for the peer to do so. One of the ranks is
  /// this one. nullptr: reported.
  [[nodiscard]] PeerRoute* make(uint32_t from, uint32_t to, Diagnostics& diagnostics);

  /// Ends all messages; none can be made any more.
  void abort(const std::string& why);
  /// Communicator::check() of all routes.
  [[nodiscard]] bool check(Diagnostics& diagnostics) const;
  /// Waits until all messages have ended.
  [[nodiscard]] bool drain(Diagnostics& diagnostics) const;

 private:
  std::vector<PeerRoute*> all() const;

  const Comm& comm_;
  mutable std::mutex mutex_;
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<PeerRoute>> routes_;
  std::string aborted_;  ///< why
};

}  // namespace mscclc::nccl
