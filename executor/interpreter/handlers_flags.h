// Flags of external arrays, by machines that have them. The others never get such a step: their
// devices refuse the plan when it is loaded.
#pragma once

#include "executor/interpreter/handlers_sync.h"

namespace mscclc::device {

template <class M, class P>
MSCCLC_RUN inline void run_await(M& m, const P& p, const typename P::Op& op) {
  if constexpr (requires { m.await_flag(target_of(p, op, 0)); }) {
    on_targets(m, p, op, [&](const auto& flag) { m.await_flag(flag); });
  }
}

template <class M, class P>
MSCCLC_RUN inline void run_notify(M& m, const P& p, const typename P::Op& op) {
  if constexpr (requires { m.notify_flag(target_of(p, op, 0)); }) {
    on_targets(m, p, op, [&](const auto& flag) { m.notify_flag(flag); });
  }
}

}  // namespace mscclc::device
