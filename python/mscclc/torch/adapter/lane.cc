#include "python/mscclc/torch/adapter/lane.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace mscclc::torch_adapter {
namespace {

/// An error with the name of the collective before it.
std::exception_ptr named(const std::string& name, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const NoPlan& none) {
    return std::make_exception_ptr(
        c10::NotImplementedError({__func__, __FILE__, __LINE__}, name + ": " + none.what()));
  } catch (const c10::DistBackendError& failed) {
    return std::make_exception_ptr(c10::DistBackendError(
        {__func__, __FILE__, __LINE__}, name + ": " + failed.what_without_backtrace()));
  } catch (const c10::Error&) {
    return error;
  } catch (const std::exception& failed) {
    return std::make_exception_ptr(
        c10::DistBackendError({__func__, __FILE__, __LINE__}, name + ": " + failed.what()));
  }
}

/// Makes the calls, or what is done instead.
void run(const Request& request, Communicator& comm, mscclc_stream_t stream) {
  // Outputs may need gradients, or be of inference mode: what is written is not recorded.
  const at::AutoDispatchBelowADInplaceOrView guard;
  try {
    comm.create();
    try {
      request.body(Runner{comm, stream});
    } catch (const NoPlan&) {
      if (!request.instead) throw;
      request.instead();
    }
  } catch (...) {
    std::rethrow_exception(named(request.about.name, std::current_exception()));
  }
}

}  // namespace

c10::intrusive_ptr<c10d::Work> HostLane::submit(Request request) {
  TORCH_CHECK(getpid() == process_, request.about.name,
              ": the process group is of the process before fork()");
  auto work = c10::make_intrusive<HostWork>(request.about,
                                            [comm = std::weak_ptr(comm_)](const std::string& why) {
                                              if (const auto alive = comm.lock()) alive->abort(why);
                                            });
  {
    const std::lock_guard lock(queue_->mutex);
    TORCH_CHECK(!queue_->closed, request.about.name, ": the process group was shut down");
    queue_->waiting.push_back({std::move(request), work});
    if (!thread_.joinable()) {
      thread_ = std::thread([queue = queue_, comm = comm_] { work_through(*queue, *comm); });
    }
  }
  queue_->changed.notify_one();
  return work;
}

void HostLane::work_through(Queue& queue, Communicator& comm) {
  for (;;) {
    Queued next;
    {
      std::unique_lock lock(queue.mutex);
      queue.changed.wait(lock, [&] { return queue.closed || !queue.waiting.empty(); });
      if (queue.waiting.empty()) return;
      next = std::move(queue.waiting.front());
      queue.waiting.pop_front();
    }
    std::exception_ptr error;
    try {
      run(next.request, comm, nullptr);
    } catch (...) {
      error = std::current_exception();
    }
    next.work->end(error);
  }
}

void HostLane::close() {
  if (getpid() != process_) {
    if (thread_.joinable()) thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->closed = true;
  }
  queue_->changed.notify_one();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // the hook of a future has let go of the group
  } else {
    thread_.join();
  }
}

DeviceLane::DeviceLane(Membership membership, c10::Device device)
    : Lane(std::move(membership)),
      device_(device),
      own_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {}

void DeviceLane::connect() {
  const c10::DeviceGuard guard(device_);
  const std::lock_guard lock(mutex_);
  comm_->create();
}

c10::intrusive_ptr<c10d::Work> DeviceLane::submit(Request request) {
  const c10::DeviceGuard guard(device_);
  const c10::impl::VirtualGuardImpl impl(device_.type());
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!closed_, request.about.name, ": the process group was shut down");
  const c10::Stream current = impl.getStream(device_);
  if (!request.async) {
    run(request, *comm_, current.native_handle());
    return nullptr;
  }
  c10::Event ready(device_.type());
  ready.record(current);
  ready.block(own_);
  const c10::StreamGuard on_own(own_);
  run(request, *comm_, own_.native_handle());
  for (const at::Tensor& tensor : request.about.tensors) {
    impl.recordDataPtrOnStream(tensor.storage().data_ptr(), own_);
  }
  return c10::make_intrusive<DeviceWork>(std::move(request.about), comm_, device_);
}

void DeviceLane::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

}  // namespace mscclc::torch_adapter
