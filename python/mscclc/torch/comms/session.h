// The ranks of a communicator, from when they have met until they part: at the end of the
// communicator, or when it gets other ranks. Communicator, works and windows share it.
#pragma once

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "python/mscclc/torch/adapter/backend.h"
#include "python/mscclc/torch/adapter/symmetric/symmetric_memory.h"
#include "python/mscclc/torch/comms/captures.h"
#include "python/mscclc/torch/comms/work.h"

namespace mscclc::torch_comms {

namespace comms = torch::comms;

using Tensors = std::vector<at::Tensor>;
using Work = c10::intrusive_ptr<comms::TorchWork>;

/// Where a rank meets the others.
struct Seat {
  c10::intrusive_ptr<c10d::Store> store;
  int rank = 0, size = 1;
};

/// Its functions are for one thread at a time, except abort() and is_aborted().
class Session {
 public:
  using Backend = torch_adapter::MscclcBackend;

  /// `timeout`: of calls that say none.
  Session(std::string name, at::Device device, Seat seat, std::chrono::milliseconds timeout,
          std::shared_ptr<AbortHooks> hooks);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& name() const { return name_; }
  const at::Device& device() const { return device_; }
  const c10::intrusive_ptr<c10d::Store>& store() const { return seat_.store; }
  int rank() const { return seat_.rank; }
  int size() const { return seat_.size; }
  /// Of later calls. Throws where they cannot have it, as the backend below says.
  void set_timeout(std::chrono::milliseconds timeout) {
    backend_->setTimeout(timeout);
    timeout_ = timeout;
  }
  void end_the_process() { failures_->end_the_process(); }

  /// Makes a call of the backend; without tensors it is of this device. Its work has ended, or its
  /// stream is ordered after it, unless it is async. A timeout of 0 is the communicator's own.
  template <class Call>
  Work run(const char* name, const Tensors& tensors, bool async, std::chrono::milliseconds timeout,
           Call call);
  /// An error, unless a call of this communicator takes the tensor: those of its GPU and of the
  /// host, and if it is of the host, of any GPU, as torch.distributed gives the communicator that
  /// it makes for all its devices.
  void check_device(const char* call, const at::Tensor& tensor) const;
  Work barrier(bool async, std::chrono::milliseconds timeout);
  /// What all ranks give, in their order; numbers of 64 bits, on the host. Collective, and waits.
  at::Tensor gather(const std::vector<int64_t>& own);

  /// Waits for all that was queued here.
  void drain();
  /// Ends all calls of all ranks, which are errors then; does not wait for them. Hooks come first.
  /// Any thread.
  void abort();
  /// By this rank, or all as ranks have failed. Any thread.
  bool is_aborted() const;
  /// By this rank.
  bool was_aborted() const { return aborted_; }
  /// For a communicator that gets other ranks: waits for all that was queued here, whether it ends
  /// well or not. Where ranks have failed, it ends at once.
  void end();
  std::chrono::milliseconds timeout_of(std::chrono::milliseconds given) const {
    return given.count() > 0 ? given : timeout_;
  }

  /// Counts the splits, which all ranks make in the same order.
  uint64_t next_split() { return splits_++; }
  /// Collective the first time: by which they map memory of one another.
  const std::shared_ptr<torch_adapter::SymmetricTeam>& team();

 private:
  /// Of the tensors, which must have one.
  at::Device device_of(const char* call, const Tensors& tensors) const;

  const std::string name_;
  const at::Device device_;
  const Seat seat_;
  std::chrono::milliseconds timeout_;
  const std::shared_ptr<Failures> failures_;
  const c10::intrusive_ptr<Backend> backend_;
  std::atomic<bool> aborted_{false};
  uint64_t splits_ = 0;
  Watch watch_;
  at::Tensor word_;                               ///< what a barrier of a GPU adds up
  c10::intrusive_ptr<c10d::ProcessGroup> group_;  ///< of the team
  std::mutex mutex_;                              ///< guards the pointer, for abort()
  std::shared_ptr<torch_adapter::SymmetricTeam> team_;
};

template <class Call>
Work Session::run(const char* name, const Tensors& tensors, bool async,
                  std::chrono::milliseconds timeout, Call call) {
  const at::Device device = device_of(name, tensors);
  c10::intrusive_ptr<c10d::Work> below;
  try {
    below = call(*backend_);
  } catch (const c10::DistBackendError& error) {
    failures_->report(error);
  }
  const c10::DeviceGuard guard(device);
  const auto failed = [backend = c10::weak_intrusive_ptr<Backend>(backend_)] {
    const auto alive = backend.lock();
    return alive && alive->getError() != c10d::ErrorType::SUCCESS;
  };
  auto work = c10::make_intrusive<CommsWork>(std::move(below), device, timeout_of(timeout),
                                             failures_, failed);
  if (!async) work->order();
  const auto stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  if (!captures(stream) && !work->isCompleted()) watch_.add(work);
  return work;
}

}  // namespace mscclc::torch_comms
