#include "tests/random_programs/families/soup/packets.h"

#include <fmt/format.h>

#include <utility>

namespace mscclc::random_programs::soup {

RankChunk Packets::new_slot(uint32_t rank) {
  const std::string name = fmt::format("k{}", slot_count_++);
  const uint32_t copies = one_in(dice_, 8) ? 1 : one_in(dice_, 8) ? 3 : 2;
  text_.add_buffer(
      rank,
      {.name = name, .chunks = shape_.wide ? 2u : 1u, .copies = copies, .packets = shape_.format});
  return {rank, name + "[0]"};
}

void Packets::send(uint32_t p) {
  const uint32_t here = shape_.rank_of(p);
  const auto from = places_.source(here, std::nullopt, {});
  if (!from) return;
  const bool away = shape_.ranks > 1 && !one_in(dice_, 5);
  if (away && shape_.format != "LL128" && one_in(dice_, 3)) return send_by_port(p, *from);
  const RankChunk slot = new_slot(away ? steps_.other_rank(here) : here);
  order_.touch(p, *from, false);
  text_.op(p, fmt::format("{} {} <- {}", away ? "put_packets" : "copy_packets",
                          away ? steps_.far(p, slot).text : slot.name, from->name));
  order_.did(p);
  order_.note(p, *from, false);
  slots_.push_back({slot, places_.value_at(*from)});
}

void Packets::send_by_port(uint32_t p, const RankChunk& from) {
  const RankChunk box = new_slot(shape_.rank_of(p)),
                  slot = new_slot(steps_.other_rank(shape_.rank_of(p)));
  order_.touch(p, from, false);
  text_.op(p, fmt::format("copy_packets {} <- {}", box.name, from.name));
  order_.did(p);
  order_.note(p, from, false);
  order_.sync(p);
  const Operand dst = steps_.far(p, slot, true);
  text_.op(p, fmt::format("put_packets {} <- {}", dst.text, box.name));
  if (!slips()) text_.op(p, "flush " + dst.text.substr(0, dst.text.find('.')));
  slots_.push_back({slot, places_.value_at(from)});
}

void Packets::receive() {
  const uint32_t i = any(static_cast<uint32_t>(slots_.size()));
  const Slot slot = slots_[i];
  slots_.erase(slots_.begin() + i);
  take(slot);
}

void Packets::take(const Slot& slot) {
  const uint32_t here = slot.place.rank, p = shape_.process(here, any(shape_.blocks));
  if (shape_.ranks > 1 && one_in(dice_, 6)) return forward(p, slot);
  const RankChunk to = places_.target(here, slot.value.position);
  const auto x = places_.source(here, slot.value.position, slot.value.ranks);
  if (!x || one_in(dice_, 5) || (shape_.origin(*x) == shape_.origin(to) && !(*x == to)))
    return unpack(p, slot, to);
  add_packets(p, slot, to, *x);
}

void Packets::forward(uint32_t p, const Slot& slot) {
  const RankChunk next = new_slot(steps_.other_rank(shape_.rank_of(p)));
  const bool port = shape_.format != "LL128" && one_in(dice_, 3);
  text_.op(
      p, fmt::format("read_put_packets {} <- {}", steps_.far(p, next, port).text, slot.place.name));
  order_.did(p);
  slots_.push_back({next, slot.value});
}

void Packets::unpack(uint32_t p, const Slot& slot, const RankChunk& to) {
  steps_.run(p, "unpack_packets", {near(to)}, {near(slot.place)}, {to}, {}, slot.value, true);
}

void Packets::add_packets(uint32_t p, const Slot& slot, const RankChunk& to, const RankChunk& x) {
  std::vector<Operand> srcs = {near(x), near(slot.place)}, dsts = {near(to)};
  if (one_in(dice_, 2)) std::swap(srcs[0], srcs[1]);
  std::vector<RankChunk> writes = {to};
  const Value value = Places::added(slot.value, places_.value_at(x));
  const uint32_t here = shape_.rank_of(p), kind = any(shape_.ranks > 1 ? 5 : 2);
  static constexpr const char* kNames[] = {"reduce_packets", "reduce_copy_packets",
                                           "reduce_send_packets", "reduce_copy_send_packets",
                                           "reduce_packets_put"};
  std::vector<RankChunk> slots;
  if (kind == 1 || kind == 3) {
    slots.push_back(new_slot(here));
    dsts.push_back(near(slots.back()));
  }
  if (kind == 2 || kind == 3) {
    slots.push_back(new_slot(steps_.other_rank(here)));
    dsts.push_back(steps_.far(p, slots.back()));
  }
  if (kind == 4) {
    writes.push_back(places_.target(steps_.other_rank(here), value.position));
    dsts.push_back(steps_.far(p, writes.back()));
  }
  steps_.run(p, kNames[kind], dsts, srcs, writes, {x}, value, true);
  for (const RankChunk& next : slots) slots_.push_back({next, value});
}

void Packets::empty_slots() {
  for (uint32_t i = 0; i < 4 && !slots_.empty(); ++i) receive();
  for (const Slot& slot : std::exchange(slots_, {})) {
    unpack(shape_.process(slot.place.rank, any(shape_.blocks)), slot,
           places_.target(slot.place.rank, slot.value.position));
  }
}

}  // namespace mscclc::random_programs::soup
