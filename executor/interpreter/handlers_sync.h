// Ops that move no data: channels, semaphores, barriers.
#pragma once

#include "executor/interpreter/frame.h"
#include "executor/interpreter/steps.h"

namespace mscclc::device {

/// Calls fn(target) for every channel, semaphore or barrier of an op.
template <class M, class P, class Fn>
MSCCLC_RUN inline void on_targets(M& m, const P& p, const typename P::Op& op, Fn fn) {
  m.for_each_target(op.count, [&](uint32_t i) { fn(target_of(p, op, i)); });
}

/// The same by the thread that posts, after what it has posted.
template <class M, class P, class Fn>
MSCCLC_RUN inline void on_posts(M& m, const P& p, const typename P::Op& op, Fn fn) {
  m.for_each_post(op.count, [&](uint32_t i) { fn(target_of(p, op, i)); });
}

template <class M, class P>
MSCCLC_RUN inline void run_signal(M& m, const P& p, const typename P::Op& op) {
  const bool relaxed = (op.flags & kRelaxed) != 0;
  const auto signal = [&](const auto& channel) { m.signal(channel, relaxed); };
  if ((op.flags & kPosts) != 0) {
    on_posts(m, p, op, signal);
  } else {
    on_targets(m, p, op, signal);
  }
}

template <class M, class P>
MSCCLC_RUN inline void run_wait(M& m, const P& p, const typename P::Op& op) {
  const bool relaxed = (op.flags & kRelaxed) != 0;
  on_targets(m, p, op, [&](const auto& channel) { m.wait(channel, relaxed); });
}

template <class M, class P>
MSCCLC_RUN inline void run_flush(M& m, const P& p, const typename P::Op& op) {
  m.flush(op.count, [&](uint32_t i) { return channel_of_target(p, op, i); });
}

template <class M, class P>
MSCCLC_RUN inline void run_release(M& m, const P& p, const typename P::Op& op) {
  on_targets(m, p, op, [&](const auto& semaphore) { m.release(semaphore); });
}

template <class M, class P>
MSCCLC_RUN inline void run_acquire(M& m, const P& p, const typename P::Op& op) {
  on_targets(m, p, op, [&](const auto& semaphore) { m.acquire(semaphore); });
}

template <class M, class P>
MSCCLC_RUN inline void run_barrier(M& m, const P& p, const typename P::Op& op) {
  m.meet(target_of(p, op, 0));
}

template <class M, class P>
MSCCLC_RUN inline void run_sync(M& m, const P&, const typename P::Op&) {
  m.sync();
}

}  // namespace mscclc::device
