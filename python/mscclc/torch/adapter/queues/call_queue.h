// Queues of calls: where collectives of a communicator run, one after the other. On the host device
// a thread runs them; on a GPU they are queued on streams, by the caller, or, if that would make it
// wait for a rank that may wait for this one, by a thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "python/mscclc/torch/adapter/communicator.h"
#include "python/mscclc/torch/adapter/process_state.h"
#include "python/mscclc/torch/adapter/queues/work.h"
#include "python/mscclc/torch/adapter/queues/worker.h"

namespace mscclc::torch_adapter {

/// A communicator, the stream for calls, and what of their buffers is symmetric. Operations on
/// tensors between the calls run in their order: the host's have ended when a call returns, and a
/// GPU's are on the current stream.
struct Runner {
  Communicator& comm;
  mscclc_stream_t stream;
  const SymmetricBuffers& symmetric;
  int32_t order = MSCCLC_ORDER_DEFAULT;

  void operator()(mscclc_call_t call) const {
    call.order = order;
    comm.call(call, stream, symmetric);
  }
};

/// A collective: what it is called, and what it does.
struct Request {
  About about;
  bool async = true;
  std::function<void(const Runner&)> body = {};
  /// What another backend does instead, where no plan serves; empty: nothing.
  std::function<void()> instead = {};
  /// On a GPU: true if the body would wait for other ranks on the host, which must not keep the
  /// caller. Empty: it may keep it.
  std::function<bool(const Runner&)> waits = {};
  SymmetricBuffers symmetric = {};
  int32_t order = ProcessState::get().order;  ///< as it is when the call is made
};

class CallQueue {
 public:
  explicit CallQueue(Membership membership)
      : comm_(std::make_shared<Communicator>(std::move(membership))) {}
  virtual ~CallQueue() = default;
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  /// nullptr: it is not async, and the current stream is ordered after it.
  virtual c10::intrusive_ptr<c10d::Work> submit(Request request) = 0;
  /// Waits for what was submitted; nothing may be submitted any more. The second time nothing.
  virtual void close() = 0;

  /// The most that its calls may have.
  std::chrono::milliseconds timeout() const { return comm_->timeout(); }
  void abort(const std::string& why) { comm_->abort(why); }
  void check() const { comm_->check(); }

 protected:
  const std::shared_ptr<Communicator> comm_;
};

class HostCallQueue final : public CallQueue {
 public:
  using CallQueue::CallQueue;
  c10::intrusive_ptr<c10d::Work> submit(Request request) override;
  void close() override { worker_.close(); }

 private:
  Worker worker_;
};

class DeviceCallQueue final : public CallQueue {
 public:
  DeviceCallQueue(Membership membership, c10::Device device);

  c10::intrusive_ptr<c10d::Work> submit(Request request) override;
  void close() override;

 private:
  /// The same by the worker, and after all that it has.
  void submit_later(Request request, PooledEvent ready, c10::intrusive_ptr<DeviceWork> work);

  std::mutex mutex_;  ///< the threads of autograd make calls, too
  const c10::Device device_;
  const c10::Stream own_;  ///< of collectives that are async
  bool closed_ = false;
  Worker worker_;  ///< while it has something to do, nothing else uses the communicator
};

}  // namespace mscclc::torch_adapter
