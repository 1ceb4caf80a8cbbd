#include "python/mscclc/torch/adapter/queues/call_queue.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "python/mscclc/torch/adapter/older_torch.h"

namespace mscclc::torch_adapter {
namespace {

/// Makes the calls, or what is done instead.
void run(const Request& request, Communicator& comm, mscclc_stream_t stream) {
  // Outputs may need gradients, or be of inference mode: what is written is not recorded.
  const at::AutoDispatchBelowADInplaceOrView guard;
  try {
    comm.create();
    try {
      request.body(Runner{comm, stream, request.symmetric, request.order});
    } catch (const NoPlan&) {
      if (!request.instead) throw;
      request.instead();
    }
  } catch (...) {
    std::rethrow_exception(named(request.about.name, std::current_exception()));
  }
}

}  // namespace

c10::intrusive_ptr<c10d::Work> HostCallQueue::submit(Request request) {
  auto work = c10::make_intrusive<HostWork>(request.about,
                                            [comm = std::weak_ptr(comm_)](const std::string& why) {
                                              if (const auto alive = comm.lock()) alive->abort(why);
                                            });
  const std::string name = request.about.name;
  const bool posted =
      worker_.post([request = std::move(request), work, comm = comm_]() mutable -> Worker::Rest {
        std::exception_ptr error;
        try {
          run(request, *comm, nullptr);
        } catch (...) {
          error = std::current_exception();
        }
        // To let go of tensors needs the interpreter, which may end once the caller knows the end.
        request = {};
        work->end(error);
        return [work] { work->end_future(); };
      });
  TORCH_CHECK(posted, name,
              ": the process group was shut down, or is of the process before fork()");
  return work;
}

DeviceCallQueue::DeviceCallQueue(Membership membership, c10::Device device)
    : CallQueue(std::move(membership)),
      device_(device),
      own_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {}

c10::intrusive_ptr<c10d::Work> DeviceCallQueue::submit(Request request) {
  const c10::DeviceGuard guard(device_);
  const c10::impl::VirtualGuardImpl impl(device_.type());
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!closed_, request.about.name, ": the process group was shut down");
  const c10::Stream current = impl.getStream(device_);
  if (!request.async) {
    worker_.wait_until_idle();
    run(request, *comm_, native_handle_of(current));
    return nullptr;
  }
  PooledEvent ready;
  ready.record(current);
  auto work = c10::make_intrusive<DeviceWork>(request.about, comm_, device_);
  if (!worker_.is_idle() ||
      (request.waits && request.waits(Runner{*comm_, native_handle_of(current), request.symmetric,
                                             request.order}))) {
    submit_later(std::move(request), std::move(ready), work);
    return work;
  }
  ready.block(own_);
  const c10::StreamGuard on_own(own_);
  try {
    run(request, *comm_, native_handle_of(own_));
  } catch (...) {  // some of it may be there
    const std::exception_ptr error = std::current_exception();
    work->refused(own_, error);
    try {
      ready.record(own_);
      ready.block(current);
    } catch (const std::exception&) {  // the device has failed: nothing runs there
    }
    std::rethrow_exception(error);
  }
  work->queued(own_);
  return work;
}

void DeviceCallQueue::submit_later(Request request, PooledEvent ready,
                                   c10::intrusive_ptr<DeviceWork> work) {
  const std::string name = request.about.name;
  auto shared = std::make_shared<PooledEvent>(std::move(ready));  // a task can be copied
  const bool posted = worker_.post([request = std::move(request), ready = std::move(shared), work,
                                    comm = comm_, device = device_, own = own_]() -> Worker::Rest {
    try {
      const c10::DeviceGuard guard(device);
      ready->block(own);
      const c10::StreamGuard on_own(own);
      run(request, *comm, native_handle_of(own));
      work->queued(own);
    } catch (...) {
      work->refused(own, std::current_exception());
    }
    return [work] { work->end_future(); };
  });
  TORCH_CHECK(posted, name, ": the process group is of the process before fork()");
}

void DeviceCallQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  worker_.close();
}

}  // namespace mscclc::torch_adapter
