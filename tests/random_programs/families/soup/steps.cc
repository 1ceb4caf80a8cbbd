#include "tests/random_programs/families/soup/steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace mscclc::random_programs::soup {

void Steps::run(uint32_t p, const std::string& name, const std::vector<Operand>& dsts,
                const std::vector<Operand>& srcs, const std::vector<RankChunk>& writes,
                const std::vector<RankChunk>& reads, const Value& value, bool whole) {
  const bool parted = !whole && one_in(dice_, 6);
  std::vector<uint32_t> doers = {p};
  if (parted && shape_.blocks == 2 && one_in(dice_, 2)) doers.push_back(p ^ 1u);
  for (const uint32_t d : doers) {
    for (const RankChunk& place : reads) order_.touch(d, place, false);
    for (const RankChunk& place : writes) order_.touch(d, place, true);
  }
  std::vector<std::string> to, from;
  for (const Operand& o : dsts) to.push_back(o.text);
  for (const Operand& o : srcs) from.push_back(o.text);
  // Now and then; not drawn, so that programs of known seeds differ from what they were only in
  // this.
  const bool tree =
      name.find("reduce") != name.npos && !name.starts_with("switch") && (order_.time(p) & 3) == 3;
  const std::string text = fmt::format("{} {} <- {}{}", name, fmt::join(to, ", "),
                                       fmt::join(from, ", "), tree ? " tree" : "");
  for (uint32_t i = 0; i < (parted ? 2u : 1u); ++i) {
    const uint32_t d = doers[i % doers.size()];
    text_.op(d, text + (parted ? fmt::format("{} part: [{}, 2]", tree ? "," : "", i) : ""));
    order_.did(d);
  }
  for (const uint32_t d : doers) {
    for (const RankChunk& place : reads) order_.note(d, place, false);
    for (const RankChunk& place : writes) order_.note(d, place, true);
  }
  for (const RankChunk& place : writes) places_.set(place, value);
}

Operand Steps::far(uint32_t p, const RankChunk& place, bool port) {
  return {text_.channel(p, shape_.process(place.rank, shape_.block_of(p)), port) + "." + place.name,
          place};
}

void Steps::move(uint32_t p) {
  const uint32_t here = shape_.rank_of(p);
  const uint32_t kind = shape_.ranks == 1 ? 0 : any(4);
  const bool reads_far = kind == 1;
  const uint32_t from_rank = reads_far ? other_rank(here) : here;
  const auto from = places_.source(from_rank, std::nullopt, {});
  if (!from) return;
  const Value value = places_.value_at(*from);
  const uint32_t to_rank = kind >= 2 ? other_rank(here) : here;
  const RankChunk to = places_.target(to_rank, value.position);
  if (shape_.origin(to) == shape_.origin(*from)) return;
  if (kind == 3) return by_port(p, *from, to, value);
  const char* name = kind == 0 ? "copy" : kind == 1 ? "get" : "put";
  const Operand dst = kind == 2 ? far(p, to) : near(to);
  const Operand src = kind == 1 ? far(p, *from) : near(*from);
  run(p, name, {dst}, {src}, {to}, {*from}, value);
}

void Steps::by_port(uint32_t p, const RankChunk& from, const RankChunk& to, const Value& value) {
  order_.touch(p, from, false);
  order_.touch(p, to, true);
  const uint32_t peer = shape_.process(to.rank, shape_.block_of(p));
  const Operand dst = far(p, to, true);
  const std::string c = text_.channel(p, peer, true);
  static constexpr const char* kOps[] = {"put", "put_with_signal", "put_with_signal_and_flush"};
  const uint32_t kind = any(3);
  text_.op(p, fmt::format("{} {} <- {}", kOps[kind], dst.text, from.name));
  if (kind == 0) text_.op(p, "signal " + c);
  if (kind < 2 && !slips()) text_.op(p, "flush " + c);
  order_.did(p);
  text_.op(peer, "wait " + c);
  order_.sync(peer);
  order_.learn(peer, p, false);
  order_.did(peer);
  order_.note(p, from, false);
  order_.note(peer, to, true);
  places_.set(to, value);
}

void Steps::sum(uint32_t p) {
  const uint32_t here = shape_.rank_of(p);
  const auto a = places_.source(here, std::nullopt, {});
  if (!a) return;
  const Value x = places_.value_at(*a);
  const bool reads_far = shape_.ranks > 1 && one_in(dice_, 2);
  const auto b = places_.source(reads_far ? other_rank(here) : here, x.position, x.ranks);
  if (!b) return;
  const Value value = Places::added(x, places_.value_at(*b));
  const bool sends = shape_.ranks > 1 && one_in(dice_, 3);
  const RankChunk to =
      one_in(dice_, 3) && !a->name.starts_with("input") ? *a : places_.target(here, x.position);
  std::vector<RankChunk> writes = {to};
  std::vector<Operand> dsts = {near(to)};
  if (sends) {
    writes.push_back(places_.target(other_rank(here), x.position));
    dsts.push_back(far(p, writes[1]));
  }
  for (const RankChunk& w : writes) {
    if (shape_.origin(w) == shape_.origin(*b) ||
        (shape_.origin(w) == shape_.origin(*a) && !(w == *a)))
      return;
  }
  const std::string name =
      fmt::format("{}reduce{}", reads_far ? "read_" : "", sends ? "_send" : "");
  run(p, name, dsts, {near(*a), reads_far ? far(p, *b) : near(*b)}, writes, {*a, *b}, value);
}

void Steps::at_switch(uint32_t p) {
  const uint32_t here = shape_.rank_of(p);
  const std::string buffer = places_.scratch();
  std::vector<RankChunk> all;
  for (uint32_t r = 0; r < shape_.ranks; ++r) all.push_back({r, buffer});
  if (one_in(dice_, 2)) {
    const auto from = places_.source(here, std::nullopt, {});
    if (!from || from->name == buffer) return;
    return run(p, "switch_broadcast", {{"sw." + buffer, all[0]}}, {near(*from)}, all, {*from},
               places_.value_at(*from));
  }
  Value value;
  for (const RankChunk& place : all) {
    const Value one = places_.value_at(place);
    if (!one.known() || (value.known() && one.position != value.position)) return;
    for (const uint32_t r : one.ranks) {
      if (std::ranges::count(value.ranks, r)) return;
    }
    value.position = one.position;
    value = Places::added(value, one);
  }
  if (one_in(dice_, 2)) {
    const RankChunk to = places_.target(here, value.position);
    if (to.name == buffer) return;
    return run(p, "switch_reduce", {near(to)}, {{"sw." + buffer, all[0]}}, {to}, all, value);
  }
  run(p, "switch_reduce_broadcast", {{"sw." + buffer, all[0]}}, {{"sw." + buffer, all[0]}}, all,
      all, value);
}

}  // namespace mscclc::random_programs::soup
