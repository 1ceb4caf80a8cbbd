// The interpreter: fetches the ops of a thread block one after the other and runs the handler
// `run_<op>` of each. The cases are the rows of ops.def: a row without a handler does not compile.
#pragma once

#include "executor/interpreter/handlers_copy.h"
#include "executor/interpreter/handlers_packet.h"
#include "executor/interpreter/handlers_reduce.h"
#include "executor/interpreter/handlers_switch.h"
#include "executor/interpreter/handlers_sync.h"

namespace mscclc::device {

template <class M>
MSCCLC_RUN inline void run_pipeline(M& m, const Frame& f, const DeviceOp& op);

template <class M>
MSCCLC_RUN inline void run_op(M& m, const Frame& f, const DeviceOp& op) {
  m.enter(op);
  switch (op.kind) {
#define OP(name, ...) \
  case OpKind::name:  \
    return run_##name(m, f, op);
#include "ir/ops.def"
#undef OP
  }
}

/// Runs the `count` ops from `op` on, which are a block's or a pipeline's body.
template <class M>
MSCCLC_RUN inline void run_ops(M& m, const Frame& f, const DeviceOp* op, uint32_t count) {
  const DeviceOp* end = op + count;
  while (op < end) {
    run_op(m, f, *op);
    op += op->kind == OpKind::pipeline ? 1 + op->count : 1;
  }
}

/// The body, the `count` ops behind this one, once per round.
template <class M>
MSCCLC_RUN inline void run_pipeline(M& m, const Frame& f, const DeviceOp& op) {
  const DeviceLoop loop = f.rank.loops[op.first];
  for (uint64_t round = 0; round < loop.rounds; ++round) {
    run_ops(m, Frame{f.rank, round * loop.unit, loop.unit}, &op + 1, op.count);
  }
}

}  // namespace mscclc::device
