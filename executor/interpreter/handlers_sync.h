// Ops that move no data: channels, semaphores, barriers.
#pragma once

#include "executor/interpreter/machine.h"

namespace mscclc::device {

/// Calls fn(target) for every channel, semaphore or barrier of an op.
template <class M, class Fn>
MSCCLC_RUN inline void on_targets(M& m, const Frame& f, const DeviceOp& op, Fn fn) {
  const uint32_t* targets = f.rank.targets + op.first;
  m.for_each_target(op.count, [&](uint32_t i) { fn(targets[i]); });
}

/// The same by the thread that posts, behind what it has posted.
template <class M, class Fn>
MSCCLC_RUN inline void on_posts(M& m, const Frame& f, const DeviceOp& op, Fn fn) {
  const uint32_t* targets = f.rank.targets + op.first;
  m.for_each_post(op.count, [&](uint32_t i) { fn(targets[i]); });
}

template <class M>
MSCCLC_RUN inline void run_signal(M& m, const Frame& f, const DeviceOp& op) {
  const bool relaxed = (op.flags & kRelaxed) != 0;
  const auto signal = [&](uint32_t channel) { m.signal(channel, relaxed); };
  if ((op.flags & kPosts) != 0) {
    on_posts(m, f, op, signal);
  } else {
    on_targets(m, f, op, signal);
  }
}

template <class M>
MSCCLC_RUN inline void run_wait(M& m, const Frame& f, const DeviceOp& op) {
  const bool relaxed = (op.flags & kRelaxed) != 0;
  on_targets(m, f, op, [&](uint32_t channel) { m.wait(channel, relaxed); });
}

template <class M>
MSCCLC_RUN inline void run_flush(M& m, const Frame& f, const DeviceOp& op) {
  on_posts(m, f, op, [&](uint32_t channel) { m.flush(channel); });
}

template <class M>
MSCCLC_RUN inline void run_release(M& m, const Frame& f, const DeviceOp& op) {
  on_targets(m, f, op, [&](uint32_t semaphore) { m.release(semaphore); });
}

template <class M>
MSCCLC_RUN inline void run_acquire(M& m, const Frame& f, const DeviceOp& op) {
  on_targets(m, f, op, [&](uint32_t semaphore) { m.acquire(semaphore); });
}

template <class M>
MSCCLC_RUN inline void run_barrier(M& m, const Frame& f, const DeviceOp& op) {
  m.meet(f.rank.targets[op.first]);
}

template <class M>
MSCCLC_RUN inline void run_sync(M& m, const Frame&, const DeviceOp&) {
  m.sync();
}

}  // namespace mscclc::device
