// Works of TorchComms over those of torch.distributed, and what notices that they have ended.
#pragma once

#include <atomic>
#include <comms/torchcomms/TorchWork.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "python/mscclc/torch/adapter/queues/event_pool.h"
#include "python/mscclc/torch/comms/failures.h"

namespace mscclc::torch_comms {

/// A call. Its status is COMPLETED when the device is done.
class CommsWork final : public torch::comms::TorchWork {
 public:
  /// Has begun. `work` is nullptr for a call that is on the current stream of a GPU: whether ranks
  /// have failed in it, `ranks_failed` says.
  CommsWork(c10::intrusive_ptr<c10d::Work> work, c10::Device device,
            std::chrono::milliseconds timeout, std::shared_ptr<Failures> failures,
            std::function<bool()> ranks_failed);

  /// On the host until it has ended; on a GPU, orders the current stream after it.
  void wait() override;
  /// The same, without the hooks of waits.
  void order();
  /// Until the device is done.
  void waitBlocking() override;
  void hostSynchronize() override { waitBlocking(); }
  std::chrono::milliseconds getTimeout() const override { return timeout_; }

  /// For the thread that watches: true if it has ended, well or not.
  bool has_ended();
  /// The same: it takes longer than its timeout.
  void is_late();
  const c10::Device& device() const { return device_; }

 private:
  void end(WorkStatus status);
  /// A call on the stream has ended; throws, or ends the process, where ranks have failed.
  void end_on_stream();
  void wait_for(std::chrono::milliseconds timeout);

  const c10::intrusive_ptr<c10d::Work> work_;
  const c10::Device device_;
  const std::chrono::milliseconds timeout_;
  const std::shared_ptr<Failures> failures_;
  const std::function<bool()> ranks_failed_;
  torch_adapter::PooledEvent on_stream_;  ///< where there is no work
  std::atomic<bool> ended_{false};        ///< the status has been set, or is about to be
};

/// Looks after the works of a communicator: notices the end of each, and on the host that it is
/// late. A work has as long as its timeout says since those before it have ended.
class Watch {
 public:
  ~Watch() { stop(); }
  /// It looks after nothing any more. The second time nothing.
  void stop();
  void add(c10::intrusive_ptr<CommsWork> work);
  /// Those that have not ended, the oldest first; it looks after them no more.
  std::deque<c10::intrusive_ptr<CommsWork>> take();

 private:
  /// What its thread uses. A hook at the end of a work may hold the last reference to the
  /// communicator, so that this ends in that thread, which goes on for a moment.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<c10::intrusive_ptr<CommsWork>> works;
    std::chrono::steady_clock::time_point oldest_since;
    bool ends = false;
  };
  static void run(State& state);
  /// True if it has ended.
  static bool look_at(CommsWork& work, std::chrono::steady_clock::time_point since);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;  ///< since the first work
};

}  // namespace mscclc::torch_comms
