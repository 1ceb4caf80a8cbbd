// Reductions at a switch: one source or destination that stands for a chunk of all its ranks. They
// are added up in the order of the switch's ranks.
#pragma once

#include "executor/interpreter/handlers_reduce.h"

namespace mscclc::device {

template <class M>
MSCCLC_RUN inline void run_switch_reduce(M& m, const Frame& f, const DeviceOp& op) {
  reduce_moves<PacketFormat::none>(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_switch_reduce_broadcast(M& m, const Frame& f, const DeviceOp& op) {
  reduce_moves<PacketFormat::none>(m, f, op);
}

}  // namespace mscclc::device
