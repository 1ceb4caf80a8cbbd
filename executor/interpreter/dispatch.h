// The interpreter: fetches the steps of a thread block one after the other and runs the handler
// `run_<step>` of each. The cases are the rows of step_kinds.def: a row without a handler does not
// compile.
#pragma once

#include "executor/interpreter/handlers_apply.h"
#include "executor/interpreter/handlers_copy.h"
#include "executor/interpreter/handlers_flags.h"
#include "executor/interpreter/handlers_packet.h"
#include "executor/interpreter/handlers_reduce.h"
#include "executor/interpreter/handlers_switch.h"
#include "executor/interpreter/handlers_sync.h"

namespace mscclc::device {

/// The body, the steps that follow, once per round: run_ops() does it.
template <class M, class P>
MSCCLC_RUN inline void run_pipeline(M&, const P&, const typename P::Op&) {}

template <class M, class P>
MSCCLC_RUN inline void run_op(M& m, const P& p, const typename P::Op& op) {
  m.enter(op);
  switch (op.kind) {
#define STEP(name, ...) \
  case StepKind::name:  \
    return run_##name(m, p, op);
#include "executor/interpreter/step_kinds.def"
#undef STEP
  }
}

/// Runs the `count` ops from `op` on, a block's. One place calls run_op(), which is long once its
/// handlers are inlined; pipelines do not nest.
template <class M, class P>
MSCCLC_RUN inline void run_ops(M& m, const P& p, const typename P::Op* op, uint32_t count) {
  const typename P::Op* const end = op + count;
  const typename P::Op* body = nullptr;      // of the pipeline at hand
  const typename P::Op* body_end = nullptr;  // nullptr: there is none
  uint64_t rounds_left = 0;
  P frame = p;
  for (;;) {
    if (op == body_end) {
      if (--rounds_left > 0) {
        op = body;
        frame.round_begin += frame.round_unit;
      } else {
        body_end = nullptr;
        frame.round_begin = frame.round_unit = 0;
      }
    }
    if (op == end) return;
    if (op->kind != StepKind::pipeline) {
      run_op(m, frame, *op++);
      continue;
    }
    const DeviceLoop loop = loop_of(frame, *op);
    body = op + 1;
    op = body + op->count;
    if (loop.rounds == 0 || op == body) continue;
    body_end = op;
    op = body;
    rounds_left = loop.rounds;
    frame.round_unit = loop.unit;
  }
}

}  // namespace mscclc::device
