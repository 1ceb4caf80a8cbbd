// Plain bytes at a switch: one source or destination that stands for a chunk of all its ranks. They
// are added up in the order of the switch's ranks.
//
// A machine may do an op through the switch itself: m.run_at_switch(p, op, rest) then says if it
// has, and calls rest(stretch) for what it leaves to be done rank by rank.
#pragma once

#include "executor/interpreter/handlers_copy.h"
#include "executor/interpreter/handlers_reduce.h"

namespace mscclc::device {

template <class M, class P, class Rest>
MSCCLC_RUN inline bool done_at_switch(M& m, const P& p, const typename P::Op& op, Rest rest) {
  if constexpr (requires { m.run_at_switch(p, op, rest); }) {
    return m.run_at_switch(p, op, rest);
  } else {
    return false;
  }
}

template <class M, class P>
MSCCLC_RUN inline void run_switch_broadcast(M& m, const P& p, const typename P::Op& op) {
  const auto rest = [&](const typename P::Stretch& s) { move_stretch(m, p, s); };
  if (!done_at_switch(m, p, op, rest)) move_all_plain(m, p, op);
}

template <class M, class P>
MSCCLC_RUN inline void run_switch_reduce(M& m, const P& p, const typename P::Op& op) {
  const auto arith = m.arith(op);
  const auto rest = [&](const typename P::Stretch& s) {
    reduce_stretch<PacketFormat::none>(m, p, s, arith);
  };
  if (!done_at_switch(m, p, op, rest)) reduce_moves<PacketFormat::none>(m, p, op);
}

}  // namespace mscclc::device
