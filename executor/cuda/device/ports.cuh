// How a block hands requests to its rank's proxy (executor/launch.h: PortQueue).
//
// One thread of a block posts. A request that publishes makes visible what that thread saw before
// it: after a block barrier all that its block wrote. The fence pairs with the proxy's acquire
// loads of the slot's words. It is what takes longest, as writes to the host's memory must have
// arrived, so those of the slot come after it.
#pragma once

#include "executor/cuda/device/wait.cuh"

namespace mscclc::cuda {

using device::PortQueue;
using device::PortRequest;
using device::PortSlot;
using device::PortWhat;

/// Waits until the queue has room for a request. What any block has seen last will do, unless the
/// queue seems full by that: a look is a trip to the host's memory.
static __device__ __forceinline__ void await_room(const PortQueue& queue, WaitState& state,
                                                  uint32_t op, uint32_t channel, uint64_t number) {
  if (state.handled + queue.capacity() > number) return;
  await(
      state,
      [&] {
        state.handled = load_acquire(queue.handled);
        return state.handled + queue.capacity() > number;
      },
      [&] {
        return Fault{WaitFor::queue, channel, op, 0, number - queue.capacity() + 1, state.handled};
      });
  store_relaxed_gpu(queue.seen, state.handled);
}

/// Posts a request and returns its number.
static __device__ __noinline__ uint64_t post_request(const PortQueue& queue, WaitState& state,
                                                     uint32_t op, const PortRequest& request,
                                                     bool publishes) {
  if (gave_up(state)) exit_thread();
  if (state.handled == 0) state.handled = load_relaxed_gpu(queue.seen);
  const uint64_t number = atomicAdd(reinterpret_cast<unsigned long long*>(queue.claimed), 1ull);
  if (publishes) fence_system();
  await_room(queue, state, op, request.channel, number);
  const PortSlot words = device::slot_of(request, queue.turn(number));
  auto* const slot = reinterpret_cast<uint8_t*>(&queue.slot(number));
  store_volatile16(slot, words.words);
  store_volatile16(slot + 16, words.words + 2);
  return number;
}

/// Waits for a flush of a channel that has this number or a later one.
static __device__ __noinline__ void await_flush(const PortQueue& queue, WaitState& state,
                                                uint32_t op, uint32_t channel, uint64_t number) {
  uint64_t flushed = 0;
  await(
      state,
      [&] {
        flushed = load_acquire(queue.flushed + channel);
        return flushed > number;
      },
      [&] { return Fault{WaitFor::flush, channel, op, 0, number + 1, flushed}; });
}

/// Waits until what this thread has posted to `n` channels has been read from its sources. All are
/// asked before the first is awaited. What the thread had put has numbers below that of its first
/// flush, so a flush of any thread that has that number or a later one covers it.
template <class ChannelOf>
__device__ __forceinline__ void flush_channels(const PortQueue& queue, WaitState& state,
                                               uint32_t op, uint32_t n, ChannelOf channel_of) {
  uint64_t first = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t number = post_request(queue, state, op, {PortWhat::flush, channel_of(i)}, false);
    if (i == 0) first = number;
  }
#pragma unroll 1
  for (uint32_t i = 0; i < n; ++i) await_flush(queue, state, op, channel_of(i), first);
}

}  // namespace mscclc::cuda
