// Row functions: whole rows, by machines that can. The others never get such a step: their devices
// refuse the plan when it is loaded.
#pragma once

#include "executor/interpreter/frame.h"
#include "executor/interpreter/steps.h"

namespace mscclc::device {

template <class M, class P>
MSCCLC_RUN inline void run_apply(M& m, const P& p, const typename P::Op& op) {
  if constexpr (requires { m.apply_rows(p, op); }) m.apply_rows(p, op);
}

/// Machines without this step get sums and functions apart (lower.h).
template <class M, class P>
MSCCLC_RUN inline void run_reduce_apply(M& m, const P& p, const typename P::Op& op) {
  if constexpr (requires { m.apply_sums(p, op); }) m.apply_sums(p, op);
}

template <class M, class P>
MSCCLC_RUN inline void run_reduce_packets_apply(M& m, const P& p, const typename P::Op& op) {
  run_reduce_apply(m, p, op);
}

}  // namespace mscclc::device
