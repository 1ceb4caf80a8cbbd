#include "executor/simulator/machine/machine.h"

#include <algorithm>

namespace mscclc {

using device::Format;
using device::Piece;

void SimMachine::park(const Wait& wait, const Waiting& reason) {
  if (wait.over()) return;
  waiting_ = reason;
  scheduler_.wait(wait);
  waiting_ = {};
}

void SimMachine::await_packet(Wait::Test test, const uint8_t* at, uint64_t value) {
  park({test, at, value}, {Waiting::For::packet, 0, at, value});
}

namespace {

/// Takes the data of `units` units; false if one of them is not there (the tile is then worthless).
/// No branch per unit: almost always all have come.
template <PacketFormat F>
bool take(const uint8_t* from, uint32_t units, const device::Stamp& stamp, uint8_t* to) {
  uint64_t missing = 0;
  for (uint32_t u = 0; u < units; ++u, from += Format<F>::kWire, to += Format<F>::kData) {
    missing |= Format<F>::missing(from, stamp);
    Format<F>::get(from, to);
  }
  return missing == 0;
}

}  // namespace

template <PacketFormat F>
void SimMachine::await_unit(const uint8_t* unit) {
  using Test = Wait::Test;
  const device::Marks marks = Format<F>::marks(stamp_.word);
  const uint64_t stamp = Format<F>::stamp(stamp_);
  for (uint32_t at = marks.first; at < Format<F>::kWire; at += marks.step) {
    if (marks.bytes == 8) {
      await_packet(Format<F>::kSentinel ? Test::differs64 : Test::equal64, unit + at, stamp);
    } else {
      await_packet(Format<F>::kSentinel ? Test::differs32 : Test::equal32, unit + at,
                   static_cast<uint32_t>(stamp));
    }
  }
}

template <PacketFormat F>
void SimMachine::read_packets(const uint8_t* slot, const Piece& piece, Tile& tile) {
  const uint8_t* from = slot + piece.unit * Format<F>::kWire;
  const uint32_t units = piece.payload / Format<F>::kData;
  if (take<F>(from, units, stamp_, tile.bytes)) return;
  for (uint32_t u = 0; u < units; ++u) await_unit<F>(from + uint64_t{u} * Format<F>::kWire);
  take<F>(from, units, stamp_, tile.bytes);
}

template <PacketFormat F>
void SimMachine::write_packets(uint8_t* slot, const Piece& piece, const Tile& tile) {
  uint8_t* to = slot + piece.unit * Format<F>::kWire;
  for (uint32_t at = 0; at < piece.payload; at += Format<F>::kData, to += Format<F>::kWire) {
    Format<F>::put(stamp_, tile.bytes + at, to);
  }
}

void SimMachine::empty_packets(uint8_t* units, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i += sizeof stamp_.sentinel) {
    std::memcpy(units + i, &stamp_.sentinel, sizeof stamp_.sentinel);
  }
}

// The handlers are templates: these are all the formats there are.
#define FORMAT(F, ...)                                                                          \
  template void SimMachine::read_packets<PacketFormat::F>(const uint8_t*, const Piece&, Tile&); \
  template void SimMachine::write_packets<PacketFormat::F>(uint8_t*, const Piece&, const Tile&);
#include "ir/ops/formats.def"
#undef FORMAT

void SimMachine::copy(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  if (!scheduler_.shuffles()) {
    std::memmove(to, from, bytes);
    return;
  }
  while (bytes > 0) {
    const uint64_t n = std::min<uint64_t>(bytes, 16 * (1 + scheduler_.dice().below(256)));
    std::memmove(to, from, n);
    to += n;
    from += n;
    bytes -= n;
    breathe();
  }
}

void SimMachine::signal(uint32_t channel, bool) {
  const Channel& end = program_.ranks[rank_id_].channels[channel];
  if (end.kind == ChannelKind::port) {
    post(channel, {});
  } else {
    ++ranks_[end.peer].channels[end.partner]->arrived;
  }
}

void SimMachine::wait(uint32_t channel, bool) {
  SimChannelEnd& end = *rank_.channels[channel];
  // Another block that waits here may take what came before this fiber goes on.
  while (end.arrived <= end.taken) {
    park({Wait::Test::above64, &end.arrived, end.taken},
         {Waiting::For::signal, channel, nullptr, end.taken + 1});
  }
  ++end.taken;
}

void SimMachine::acquire(uint32_t semaphore) {
  uint64_t& count = rank_.semaphores[semaphore];
  // Others may take what came before this fiber goes on.
  while (count == 0) {
    park({Wait::Test::above64, &count, 0}, {Waiting::For::semaphore, semaphore, nullptr, 1});
  }
  --count;
}

void SimMachine::await_flag(uint32_t flag) {
  const SimFlag& word = rank_.flags[flag];
  const uint64_t wanted = rank_.started * word.each;
  park({Wait::Test::above64, &word.raised, wanted - 1},
       {Waiting::For::flag, flag, nullptr, wanted});
}

void SimMachine::meet(uint32_t barrier) {
  BarrierState& state = rank_.barriers[barrier];
  if (++state.arrived == barriers_[barrier].blocks.size()) {
    state.arrived = 0;
    ++state.generation;
    return;
  }
  park({Wait::Test::differs64, &state.generation, state.generation},
       {Waiting::For::barrier, barrier, nullptr, state.generation + 1});
}

void SimMachine::post(uint32_t channel, const PortRequest& request) {
  SimChannelEnd& end = *rank_.channels[channel];
  while (end.posted - end.done == SimChannelEnd::kQueue) {
    park({Wait::Test::above64, &end.done, end.done}, {Waiting::For::queue, channel, nullptr, 0});
  }
  end.queue[end.posted % SimChannelEnd::kQueue] = request;
  ++end.posted;
}

void SimMachine::post_put(uint32_t channel, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  if (bytes > 0) post(channel, {to, from, bytes, op_->source});
}

void SimMachine::flush(uint32_t channel) {
  SimChannelEnd& end = *rank_.channels[channel];
  if (end.posted == 0) return;
  park({Wait::Test::above64, &end.done, end.posted - 1},
       {Waiting::For::flush, channel, nullptr, end.posted});
}

void SimProxy::copy(const PortRequest& request) {
  uint64_t at = 0;
  while (at < request.bytes) {
    // Whole lines, as a network would: packets do not arrive in halves.
    uint64_t n = request.bytes - at;
    if (scheduler_.shuffles()) n = std::min<uint64_t>(n, 128 * (1 + scheduler_.dice().below(64)));
    std::memmove(request.to + at, request.from + at, n);
    at += n;
    if (scheduler_.shuffles()) scheduler_.yield();
  }
}

uint64_t SimChannelEnd::any_next(Dice& dice) const {
  uint64_t next = done;
  uint32_t found = 0;
  for (uint64_t i = done; i < posted && queue[i % kQueue].to != nullptr; ++i) {
    const PortRequest& put = queue[i % kQueue];
    bool free = true;
    for (uint64_t j = done; j < i; ++j) {
      const PortRequest& before = queue[j % kQueue];
      free &= put.to + put.bytes <= before.to || before.to + before.bytes <= put.to;
    }
    if (free && dice.below(++found) == 0) next = i;
  }
  return next;
}

void SimProxy::serve() {
  for (;;) {
    scheduler_.wait({Wait::Test::above64, &own_.posted, own_.done});
    if (scheduler_.shuffles()) {
      bring_forward(own_.queue, own_.done, own_.any_next(scheduler_.dice()));
    }
    const PortRequest request = own_.queue[own_.done % SimChannelEnd::kQueue];
    if (request.to == nullptr) {
      ++partner_->arrived;
    } else {
      copy(request);
    }
    ++own_.done;
  }
}

}  // namespace mscclc
