// Works: what a caller holds of a collective that has been queued.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Stream.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "python/mscclc/torch/adapter/communicator.h"
#include "python/mscclc/torch/adapter/queues/event_pool.h"

namespace mscclc::torch_adapter {

/// What a collective is called in errors, and what its Work holds.
struct About {
  c10d::OpType op = c10d::OpType::UNKNOWN;
  std::string name;  ///< "allreduce 7 of group 0"
  int rank = 0;
  uint64_t sequence = 0;
  std::vector<at::Tensor> tensors;  ///< in and out, kept until it has ended
  std::vector<at::Tensor> outputs;
  std::chrono::milliseconds timeout{0};  ///< of wait(); 0: the communicator's own
};

/// An error with the name of the collective before it; errors of torch itself as they are.
std::exception_ptr named(const std::string& name, const std::exception_ptr& error);

/// A collective on the host device, run by another thread.
class HostWork : public c10d::Work {
 public:
  /// `expire` ends the collective when wait() has waited too long.
  HostWork(About about, std::function<void(const std::string&)> expire);

  /// Called by the thread that has run it: it has ended.
  void end(std::exception_ptr error);
  /// After that: ends the future, whose callbacks may wait for other works.
  void end_future();

  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  void abort() override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  uint64_t getSequencenumber() const override { return about_.sequence; }

 private:
  About about_;
  const std::function<void(const std::string&)> expire_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

/// A collective on a stream of a device, or one that a thread is about to put there.
class DeviceWork : public c10d::Work {
 public:
  DeviceWork(About about, std::shared_ptr<Communicator> comm, c10::Device device);

  /// Called by the thread that has put it on a stream.
  void queued(const c10::Stream& stream);
  /// The same where it could not be put there, or not all of it.
  void refused(const c10::Stream& stream, std::exception_ptr error);
  /// After one of them, if a future was asked for before: ends it. Its callbacks may wait for other
  /// works.
  void end_future();

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  /// Orders the current stream after it; a barrier also blocks the host.
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  void abort() override;
  std::vector<at::Tensor> result() override { return about_.outputs; }
  /// Made when it is first asked for, as torch makes an event for each.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return about_.sequence; }

 private:
  /// Memory of its tensors is not given to others before the stream is done with it.
  void keep_memory_for(const c10::Stream& stream) const;
  /// Until it is on the stream; throws why it is not.
  void wait_until_queued();
  /// Throws what has gone wrong on the device, in this collective or another one.
  void check() const;

  const About about_;
  const std::shared_ptr<Communicator> comm_;
  const c10::Device device_;
  // `mutex_` guards what follows.
  PooledEvent ended_;                  ///< once it is queued
  std::optional<c10::Stream> stream_;  ///< the same: where
  bool is_queued_ = false;             ///< or refused: then `exception_` says why
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool future_has_ended_ = false;  ///< or is about to be ended
};

/// Several works as one.
class Works : public c10d::Work {
 public:
  explicit Works(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  void abort() override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  const std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};

}  // namespace mscclc::torch_adapter
