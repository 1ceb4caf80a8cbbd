// Plain moves: copy, put, get, puts over ports, store to a switch.
//
// A put over a port only tells the proxy what to move; the source is read later, until a flush.
#pragma once

#include "executor/interpreter/machine.h"

namespace mscclc::device {

/// Moves the only source of `move` to all its destinations.
template <class M>
MSCCLC_RUN inline void move_plain(M& m, const Frame& f, const DeviceOp& op, const Move& move) {
  for_each_stretch<PacketFormat::none>(f, op, move, [&](const Stretch& s) {
    const uint8_t* from = address_of(m, f, s, move.dsts) + s.skip;
    for (uint32_t k = 0; k < move.dsts; ++k) {
      const DeviceOperand& operand = f.rank.operands[move.operands + k];
      for (uint32_t member = 0; member < operand.members; ++member) {
        uint8_t* to = address_of(m, f, s, k, member) + s.skip;
        if constexpr (machine_posts<M>()) {
          if ((operand.flags & kPort) != 0) {
            m.post_put(operand.channel, to, from, s.count);
            continue;
          }
        }
        if (to != from) m.copy(to, from, s.count);
      }
    }
  });
}

template <class M>
MSCCLC_BODY inline void move_all_plain(M& m, const Frame& f, const DeviceOp& op) {
  for (uint32_t i = 0; i < op.count; ++i) move_plain(m, f, op, f.rank.moves[op.first + i]);
}

/// The channel of a move's first destination.
MSCCLC_RUN inline uint32_t channel_of(const Frame& f, const Move& move) {
  return f.rank.operands[move.operands].channel;
}

template <class M>
MSCCLC_RUN inline void run_copy(M& m, const Frame& f, const DeviceOp& op) {
  move_all_plain(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_put(M& m, const Frame& f, const DeviceOp& op) {
  move_all_plain(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_get(M& m, const Frame& f, const DeviceOp& op) {
  move_all_plain(m, f, op);
}

template <class M>
MSCCLC_RUN inline void run_switch_broadcast(M& m, const Frame& f, const DeviceOp& op) {
  move_all_plain(m, f, op);
}

// Signals follow all puts of the op: on each channel they come after its own.
template <class M>
MSCCLC_RUN inline void run_put_with_signal(M& m, const Frame& f, const DeviceOp& op) {
  move_all_plain(m, f, op);
  m.for_each_post(op.count,
                  [&](uint32_t i) { m.signal(channel_of(f, f.rank.moves[op.first + i]), false); });
}

template <class M>
MSCCLC_RUN inline void run_put_with_signal_and_flush(M& m, const Frame& f, const DeviceOp& op) {
  run_put_with_signal(m, f, op);
  m.for_each_post(op.count,
                  [&](uint32_t i) { m.flush(channel_of(f, f.rank.moves[op.first + i])); });
}

}  // namespace mscclc::device
