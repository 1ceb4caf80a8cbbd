// How a block hands requests to its rank's proxy (executor/launch.h: PortQueue).
//
// One thread of a block posts. A request publishes what that thread saw before it: after a block
// barrier all that its block wrote. It pairs with the proxy's acquire load of `ready`.
#pragma once

#include "executor/cuda/wait.cuh"

namespace mscclc::cuda {

using device::PortQueue;
using device::PortRequest;
using device::PortWhat;

/// Posts a request and returns its number.
static __device__ __noinline__ uint64_t post_request(const PortQueue& queue, WaitState& state,
                                                     uint32_t op, const PortRequest& request) {
  if (gave_up(state)) exit_thread();
  const uint64_t number = atomicAdd(reinterpret_cast<unsigned long long*>(queue.claimed), 1ull);
  uint64_t handled = 0;
  await(
      state,
      [&] {
        handled = load_acquire(queue.handled);
        return handled + queue.capacity > number;
      },
      [&] {
        return Fault{WaitFor::queue, request.channel, op, 0, number - queue.capacity + 1, handled};
      });
  PortRequest& slot = queue.slots[number % queue.capacity];
  slot.what = request.what;
  slot.channel = request.channel;
  slot.to = request.to;
  slot.from = request.from;
  slot.bytes = request.bytes;
  store_release(&slot.ready, number + 1);
  return number;
}

/// Waits until the proxy has handled all that this thread has posted.
static __device__ __noinline__ void flush_requests(const PortQueue& queue, WaitState& state,
                                                   uint32_t op, uint32_t channel) {
  const uint64_t number = post_request(queue, state, op, {PortWhat::flush, channel, 0, 0, 0, 0});
  uint64_t handled = 0;
  await(
      state,
      [&] {
        handled = load_acquire(queue.handled);
        return handled > number;
      },
      [&] { return Fault{WaitFor::flush, channel, op, 0, number + 1, handled}; });
}

}  // namespace mscclc::cuda
