// The steps of a soup that send packets, take them and hand them on.
#include <fmt/format.h>

#include <utility>

#include "tests/random_programs/families/soup.h"

namespace mscclc::random_programs {

Soup::Place Soup::new_slot(uint32_t rank) {
  const std::string name = fmt::format("k{}", slot_count_++);
  const uint32_t copies = one_in(dice_, 8) ? 1 : one_in(dice_, 8) ? 3 : 2;
  sketch_.ranks[rank].buffers.push_back(
      {.name = name, .chunks = wide_ ? 2u : 1u, .copies = copies, .packets = format_});
  return {rank, name + "[0]"};
}

void Soup::send(uint32_t p) {
  const uint32_t here = rank_of(p);
  const auto from = source(here, std::nullopt, {});
  if (!from) return;
  const bool away = ranks_ > 1 && !one_in(dice_, 5);
  if (away && format_ != "LL128" && one_in(dice_, 3)) return send_by_port(p, *from);
  const Place slot = new_slot(away ? other_rank(here) : here);
  touch(p, *from, false);
  op(p, fmt::format("{} {} <- {}", away ? "put_packets" : "copy_packets",
                    away ? far(p, slot).text : slot.name, from->name));
  ++time_[p];
  note(p, *from, false);
  slots_.push_back({slot, value_at(*from)});
}

void Soup::send_by_port(uint32_t p, const Place& from) {
  const Place box = new_slot(rank_of(p)), slot = new_slot(other_rank(rank_of(p)));
  touch(p, from, false);
  op(p, fmt::format("copy_packets {} <- {}", box.name, from.name));
  ++time_[p];
  note(p, from, false);
  sync(p);
  const Operand dst = far(p, slot, true);
  op(p, fmt::format("put_packets {} <- {}", dst.text, box.name));
  if (!slips()) op(p, "flush " + dst.text.substr(0, dst.text.find('.')));
  slots_.push_back({slot, value_at(from)});
}

void Soup::receive() {
  const uint32_t i = any(static_cast<uint32_t>(slots_.size()));
  const Slot slot = slots_[i];
  slots_.erase(slots_.begin() + i);
  take(slot);
}

void Soup::take(const Slot& slot) {
  const uint32_t here = slot.place.rank, p = process(here, any(blocks_));
  if (ranks_ > 1 && one_in(dice_, 6)) return forward(p, slot);
  const Place to = target(here, slot.value.position);
  const auto x = source(here, slot.value.position, slot.value.ranks);
  if (!x || one_in(dice_, 5) || (origin(*x) == origin(to) && !(*x == to)))
    return unpack(p, slot, to);
  add_packets(p, slot, to, *x);
}

void Soup::forward(uint32_t p, const Slot& slot) {
  const Place next = new_slot(other_rank(rank_of(p)));
  const bool port = format_ != "LL128" && one_in(dice_, 3);
  op(p, fmt::format("read_put_packets {} <- {}", far(p, next, port).text, slot.place.name));
  ++time_[p];
  slots_.push_back({next, slot.value});
}

void Soup::unpack(uint32_t p, const Slot& slot, const Place& to) {
  run(p, "unpack_packets", {near(to)}, {near(slot.place)}, {to}, {}, slot.value, true);
}

void Soup::add_packets(uint32_t p, const Slot& slot, const Place& to, const Place& x) {
  std::vector<Operand> srcs = {near(x), near(slot.place)}, dsts = {near(to)};
  if (one_in(dice_, 2)) std::swap(srcs[0], srcs[1]);
  std::vector<Place> writes = {to};
  const Value value = added(slot.value, value_at(x));
  const uint32_t here = rank_of(p), kind = any(ranks_ > 1 ? 5 : 2);
  static constexpr const char* kNames[] = {"reduce_packets", "reduce_copy_packets",
                                           "reduce_send_packets", "reduce_copy_send_packets",
                                           "reduce_packets_put"};
  std::vector<Place> slots;
  if (kind == 1 || kind == 3) {
    slots.push_back(new_slot(here));
    dsts.push_back(near(slots.back()));
  }
  if (kind == 2 || kind == 3) {
    slots.push_back(new_slot(other_rank(here)));
    dsts.push_back(far(p, slots.back()));
  }
  if (kind == 4) {
    writes.push_back(target(other_rank(here), value.position));
    dsts.push_back(far(p, writes.back()));
  }
  run(p, kNames[kind], dsts, srcs, writes, {x}, value, true);
  for (const Place& next : slots) slots_.push_back({next, value});
}

void Soup::empty_slots() {
  for (uint32_t i = 0; i < 4 && !slots_.empty(); ++i) receive();
  for (const Slot& slot : std::exchange(slots_, {})) {
    unpack(process(slot.place.rank, any(blocks_)), slot,
           target(slot.place.rank, slot.value.position));
  }
}

}  // namespace mscclc::random_programs
