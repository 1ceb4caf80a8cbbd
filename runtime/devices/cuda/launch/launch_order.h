// Makes launches begin in the order that their epochs want (launch_epochs.h): one of these for each
// GPU of a process, whatever communicators its launches belong to.
//
// Launches that run when they are made: every block of ours adds one to a count of the GPU when it
// begins, and a stream whose launch must begin after others waits (cuStreamWaitValue32) for the
// count that the launches of all earlier epochs make. Nothing is put on the streams of those, which
// may be gone by then, and nothing waits for the end of a call: only room is at stake. The wait
// does not deadlock with hardware queues that streams share: all that it waits for was submitted
// before.
//
// Launches that a capture takes: their kernels get edges from the last kernels of the epoch before.
// They do not count, as there is no knowing when and how often a graph is replayed. So what is
// captured is ordered within its capture; a graph that is replayed beside other calls is the user's
// to order (docs/runtime.md).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "executor/launch.h"
#include "runtime/devices/cuda/launch/launch_epochs.h"
#include "runtime/devices/cuda/memory/memory.h"

namespace mscclc::cuda {

/// What the loaded kernels can do (executor/cuda/kernel.h), if the user lets them.
struct EarlyLaunch {
  bool works = false;
  bool works_in_captures = false;
  /// In captures, too, launches begin early after any kernel that lets them, also the user's; else
  /// after launches of ours only. A launch that could begin early, and that no kernel lets, begins
  /// later than others.
  bool after_any = false;
};

/// Does a launch let the next one begin at once, where that does no harm?
inline bool is_small(const device::LaunchPlan& plan) { return plan.blocks <= plan.most_blocks / 4; }

/// Thread-safe. Threads that launch on one GPU at the same time have no order; each thread's
/// launches are ordered.
class LaunchOrder {
 public:
  /// That of a context, made by the first call for it. nullptr: reported.
  static std::shared_ptr<LaunchOrder> of(const SharedContext& context, OwnStream& stream,
                                         Diagnostics& diagnostics);

  /// A launch that has its place.
  struct OrderedLaunch {
    abi::Stream stream = nullptr;
    uint64_t stream_id = 0;             ///< 0: still to be asked for
    uint64_t capture = 0;               ///< id; 0: none
    std::vector<abi::GraphNode> ahead;  ///< of the capture: what the launch will come after
    uint32_t blocks = 0;
    uint32_t room = 0;  ///< multiprocessors of the stream
  };
  /// Lets a stream wait for what `plan` must begin after, and sets `early`, `frees_next` and
  /// `begun` of it. `turn` may bring the id of a stream that is not captured. False: reported.
  /// REQUIRES: the context is current.
  bool take_turn(abi::Stream stream, EarlyLaunch early, device::LaunchPlan& plan,
                 OrderedLaunch& turn, Diagnostics& diagnostics);
  /// The launch has been made. False: reported.
  bool launched(const OrderedLaunch& turn, Diagnostics& diagnostics);

 private:
  using Nodes = std::vector<abi::GraphNode>;
  struct Capture {
    LaunchEpochs epochs;
    std::map<uint64_t, Nodes> last;  ///< by stream: its last launch of the epoch
    Nodes before;                    ///< the last ones of the epoch before
  };
  /// Captures that may be under way at a time. The driver says nothing of their ends.
  static constexpr size_t kMaxCaptures = 1024;

  LaunchOrder(SharedContext context, std::unique_ptr<Memory> begun);
  bool find(abi::Stream stream, OrderedLaunch& turn, Diagnostics& diagnostics);
  bool find_room(OrderedLaunch& turn, Diagnostics& diagnostics);
  bool find_ahead(abi::Stream stream, Nodes& ahead, Diagnostics& diagnostics) const;
  bool fits(const device::LaunchPlan& plan, const OrderedLaunch& turn,
            Diagnostics& diagnostics) const;
  bool await_begun(const OrderedLaunch& turn, uint32_t count, Diagnostics& diagnostics) const;
  bool add_edges(const OrderedLaunch& turn, Nodes before, Diagnostics& diagnostics) const;
  Capture& capture(uint64_t id);
  static bool follows_own(const Capture& capture, const OrderedLaunch& turn);

  const SharedContext context_;
  const std::unique_ptr<Memory> begun_;  ///< the count, which wraps around
  const uint32_t room_;                  ///< multiprocessors

  std::mutex mutex_;
  LaunchEpochs epochs_;        ///< of launches that are not captured
  uint32_t launched_ = 0;      ///< blocks of theirs so far
  uint32_t epoch_begins_ = 0;  ///< blocks of all earlier epochs
  std::map<uint64_t, Capture> captures_;
  uint64_t asked_stream_ = 0;  ///< the last stream whose multiprocessors were asked for ...
  uint32_t asked_room_ = 0;    ///< ... and how many it has
};

}  // namespace mscclc::cuda
