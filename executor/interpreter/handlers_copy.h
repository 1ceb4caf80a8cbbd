// Plain moves: to and from this rank and others, also through ports.
//
// A put over a port only asks the proxy to move the data; the source is read later, until a flush.
#pragma once

#include "executor/interpreter/frame.h"
#include "executor/interpreter/steps.h"

namespace mscclc::device {

/// Moves the only source of a stretch to all its destinations.
template <class M, class P>
MSCCLC_RUN inline void move_stretch(M& m, const P& p, const typename P::Stretch& s) {
  const uint8_t* from = address_of(m, p, s, dsts_of(s)) + s.skip;
  for (uint32_t k = 0; k < dsts_of(s); ++k) {
    for (uint32_t member = 0; member < members_of(p, s, k); ++member) {
      uint8_t* to = address_of(m, p, s, k, member) + s.skip;
      if ((flags_of(p, s, k) & kPort) != 0) {
        m.post_put(channel_of(p, s, k), to, from, s.count);
      } else if (to != from) {
        m.copy(to, from, s.count);
      }
    }
  }
}

template <class M, class P>
MSCCLC_BODY inline void move_all_plain(M& m, const P& p, const typename P::Op& op) {
  for (uint32_t i = 0; i < op.count; ++i) {
    for_each_stretch<PacketFormat::none>(
        p, op, i, [&](const typename P::Stretch& s) { move_stretch(m, p, s); });
  }
}

template <class M, class P>
MSCCLC_RUN inline void run_copy(M& m, const P& p, const typename P::Op& op) {
  move_all_plain(m, p, op);
}

}  // namespace mscclc::device
