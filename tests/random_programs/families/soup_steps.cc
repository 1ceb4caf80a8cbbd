// The steps of a soup that move plain data: moves, sums, and what switches do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/random_programs/families/soup.h"

namespace mscclc::random_programs {

void Soup::step() {
  const uint32_t p = any(ranks_ * blocks_);
  const uint32_t kind = any(with_packets_ ? 12 : 7);
  if (kind >= 7) return kind < 10 && !slots_.empty() ? receive() : send(p);
  if (kind >= 5 && with_switch_) return at_switch(p);
  if (kind >= 3) return sum(p);
  move(p);
}

void Soup::run(uint32_t p, const std::string& name, const std::vector<Operand>& dsts,
               const std::vector<Operand>& srcs, const std::vector<Place>& writes,
               const std::vector<Place>& reads, const Value& value, bool whole) {
  const bool parted = !whole && one_in(dice_, 6);
  std::vector<uint32_t> doers = {p};
  if (parted && blocks_ == 2 && one_in(dice_, 2)) doers.push_back(p ^ 1u);
  for (const uint32_t d : doers) {
    for (const Place& place : reads) touch(d, place, false);
    for (const Place& place : writes) touch(d, place, true);
  }
  std::vector<std::string> to, from;
  for (const Operand& o : dsts) to.push_back(o.text);
  for (const Operand& o : srcs) from.push_back(o.text);
  // Now and then; not drawn, so that programs of known seeds differ from what they were only in
  // this.
  const bool tree =
      name.find("reduce") != name.npos && !name.starts_with("switch") && (time_[p] & 3) == 3;
  const std::string text = fmt::format("{} {} <- {}{}", name, fmt::join(to, ", "),
                                       fmt::join(from, ", "), tree ? " tree" : "");
  for (uint32_t i = 0; i < (parted ? 2u : 1u); ++i) {
    const uint32_t d = doers[i % doers.size()];
    op(d, text + (parted ? fmt::format("{} part: [{}, 2]", tree ? "," : "", i) : ""));
    ++time_[d];
  }
  for (const uint32_t d : doers) {
    for (const Place& place : reads) note(d, place, false);
    for (const Place& place : writes) note(d, place, true);
  }
  for (const Place& place : writes) set(place, value);
}

void Soup::move(uint32_t p) {
  const uint32_t here = rank_of(p);
  const uint32_t kind = ranks_ == 1 ? 0 : any(4);
  const bool reads_far = kind == 1;
  const uint32_t from_rank = reads_far ? other_rank(here) : here;
  const auto from = source(from_rank, std::nullopt, {});
  if (!from) return;
  const Value value = value_at(*from);
  const uint32_t to_rank = kind >= 2 ? other_rank(here) : here;
  const Place to = target(to_rank, value.position);
  if (origin(to) == origin(*from)) return;
  if (kind == 3) return by_port(p, *from, to, value);
  const char* name = kind == 0 ? "copy" : kind == 1 ? "get" : "put";
  const Operand dst = kind == 2 ? far(p, to) : near(to);
  const Operand src = kind == 1 ? far(p, *from) : near(*from);
  run(p, name, {dst}, {src}, {to}, {*from}, value);
}

void Soup::by_port(uint32_t p, const Place& from, const Place& to, const Value& value) {
  touch(p, from, false);
  touch(p, to, true);
  const uint32_t peer = process(to.rank, block_of(p));
  const Operand dst = far(p, to, true);
  const std::string c = channel(p, peer, true);
  static constexpr const char* kOps[] = {"put", "put_with_signal", "put_with_signal_and_flush"};
  const uint32_t kind = any(3);
  op(p, fmt::format("{} {} <- {}", kOps[kind], dst.text, from.name));
  if (kind == 0) op(p, "signal " + c);
  if (kind < 2 && !slips()) op(p, "flush " + c);
  ++time_[p];
  op(peer, "wait " + c);
  sync(peer);
  learn(peer, p, false);
  ++time_[peer];
  note(p, from, false);
  accesses_[origin(to)].push_back({peer, time_[peer], true});
  set(to, value);
}

void Soup::sum(uint32_t p) {
  const uint32_t here = rank_of(p);
  const auto a = source(here, std::nullopt, {});
  if (!a) return;
  const Value x = value_at(*a);
  const bool reads_far = ranks_ > 1 && one_in(dice_, 2);
  const auto b = source(reads_far ? other_rank(here) : here, x.position, x.ranks);
  if (!b) return;
  const Value value = added(x, value_at(*b));
  const bool sends = ranks_ > 1 && one_in(dice_, 3);
  const Place to =
      one_in(dice_, 3) && !a->name.starts_with("input") ? *a : target(here, x.position);
  std::vector<Place> writes = {to};
  std::vector<Operand> dsts = {near(to)};
  if (sends) {
    writes.push_back(target(other_rank(here), x.position));
    dsts.push_back(far(p, writes[1]));
  }
  for (const Place& w : writes) {
    if (origin(w) == origin(*b) || (origin(w) == origin(*a) && !(w == *a))) return;
  }
  const std::string name =
      fmt::format("{}reduce{}", reads_far ? "read_" : "", sends ? "_send" : "");
  run(p, name, dsts, {near(*a), reads_far ? far(p, *b) : near(*b)}, writes, {*a, *b}, value);
}

void Soup::at_switch(uint32_t p) {
  const uint32_t here = rank_of(p);
  const std::string buffer = scratch();
  std::vector<Place> all;
  for (uint32_t r = 0; r < ranks_; ++r) all.push_back({r, buffer});
  if (one_in(dice_, 2)) {
    const auto from = source(here, std::nullopt, {});
    if (!from || from->name == buffer) return;
    return run(p, "switch_broadcast", {{"sw." + buffer, all[0]}}, {near(*from)}, all, {*from},
               value_at(*from));
  }
  Value value;
  for (const Place& place : all) {
    const Value one = value_at(place);
    if (!one.known() || (value.known() && one.position != value.position)) return;
    for (const uint32_t r : one.ranks) {
      if (std::ranges::count(value.ranks, r)) return;
    }
    value.position = one.position;
    value = added(value, one);
  }
  if (one_in(dice_, 2)) {
    const Place to = target(here, value.position);
    if (to.name == buffer) return;
    return run(p, "switch_reduce", {near(to)}, {{"sw." + buffer, all[0]}}, {to}, all, value);
  }
  run(p, "switch_reduce_broadcast", {{"sw." + buffer, all[0]}}, {{"sw." + buffer, all[0]}}, all,
      all, value);
}

}  // namespace mscclc::random_programs
