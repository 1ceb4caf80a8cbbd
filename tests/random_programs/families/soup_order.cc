// The order of a soup: who has touched what, who knows of it, and how others learn.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/random_programs/families/soup.h"

namespace mscclc::random_programs {

void Soup::sync(uint32_t p) {
  if (slips()) return;
  op(p, "sync");
  settled_[p] = time_[p];
}

void Soup::declare() {
  for (uint32_t r = 0; r < ranks_; ++r) {
    RankSketch& rank = sketch_.ranks[r];
    rank.blocks.resize(blocks_);
    if (with_switch_) {
      std::vector<uint32_t> all;
      for (uint32_t q = 0; q < ranks_; ++q) all.push_back(q);
      rank.channels.push_back(fmt::format("channel sw = switch([{}])", fmt::join(all, ", ")));
    }
  }
  for (const char* name : {"s", "t", "u"}) {
    const uint32_t units = piped_ && !wide_ && one_in(dice_, 2) ? 2 + any(2) : 0;
    for (RankSketch& rank : sketch_.ranks) {
      rank.buffers.push_back({.name = name, .chunks = wide_ ? 2u : 1u, .units = units});
    }
  }
}

void Soup::begin() {
  body_.resize(processes());
  time_.assign(processes(), 0);
  settled_.assign(processes(), 0);
  known_.assign(processes(), Clock(processes(), 0));
  for (uint32_t r = 0; r < ranks_; ++r) {
    time_[caller(r)] = settled_[caller(r)] = 1;
    for (uint32_t b = 0; b < blocks_; ++b) known_[process(r, b)][caller(r)] = 1;
    for (uint32_t i = 0; i < outputs(); ++i) {
      accesses_[{r, fmt::format("output[{}]", i)}].push_back({caller(r), 1, true});
    }
    for (uint32_t i = 0; i < positions_; ++i) {
      const Place input = {r, fmt::format("input[{}]", i)};
      accesses_[origin(input)].push_back({caller(r), 1, true});
      values_[input] = {i, {r}};
    }
  }
}

Soup::Place Soup::origin(const Place& place) const {
  if (!either_ || !place.name.starts_with("input")) return place;
  const uint32_t first = gathers_ ? place.rank * positions_ : 0;
  return {place.rank, fmt::format("output[{}]", first + number(place.name))};
}

void Soup::cut_here() {
  std::vector<size_t>& ends = cuts_.emplace_back();
  for (const auto& body : body_) ends.push_back(body.size());
}

void Soup::inform(uint32_t q, uint32_t p, bool relaxed) {
  if (rank_of(q) == rank_of(p)) {
    if (one_in(dice_, 2)) return meet(rank_of(p));
    const std::string name = fmt::format("e{}{}", block_of(q), block_of(p));
    RankSketch& rank = sketch_.ranks[rank_of(p)];
    if (semaphores_.insert({rank_of(p), name}).second) rank.semaphores.push_back({name, 0});
    sync(q);
    op(q, "release " + name);
    op(p, "acquire " + name);
  } else {
    const std::string name = channel(q, p, !relaxed && one_in(dice_, 5));
    const std::string how = relaxed ? " relaxed" : "";
    if (!relaxed) sync(q);
    op(q, "signal " + name + how);
    op(p, "wait " + name + how);
  }
  sync(p);
  learn(p, q, relaxed);
}

void Soup::learn(uint32_t p, uint32_t q, bool relaxed) {
  if (relaxed) {
    known_[p][caller(rank_of(q))] = 1;
    return;
  }
  for (uint32_t i = 0; i < processes(); ++i) {
    known_[p][i] = std::max(known_[p][i], known_[q][i]);
  }
  known_[p][q] = std::max(known_[p][q], time_[q]);
}

void Soup::meet(uint32_t rank) {
  if (blocks_ < 2) return;
  const uint32_t a = process(rank, 0), b = process(rank, 1);
  for (const uint32_t p : {a, b}) op(p, "barrier 0..2");
  learn(a, b, false);
  learn(b, a, false);
  settled_[a] = time_[a];
  settled_[b] = time_[b];
}

std::string Soup::channel(uint32_t q, uint32_t p, bool port) {
  const std::string name = fmt::format("{}{}{}", port ? "n" : "c", std::min(p, q), std::max(p, q));
  if (channels_.insert(name).second) {
    connect(sketch_, port ? "port" : "memory", name, rank_of(std::min(p, q)),
            rank_of(std::max(p, q)));
  }
  return name;
}

void Soup::touch(uint32_t p, const Place& place, bool write) {
  std::vector<Access>& list = accesses_[origin(place)];
  for (size_t i = 0; i < list.size(); ++i) {
    const Access old = list[i];
    if (!write && !old.write) continue;
    if (old.process == p) {
      if (settled_[p] < old.time) sync(p);
      continue;
    }
    if (known_[p][old.process] >= old.time || slips()) continue;
    const uint32_t r = rank_of(old.process);
    if (old.process == caller(r)) {
      inform(process(r, any(blocks_)), p, !one_in(dice_, 3));
    } else {
      inform(old.process, p, slips());
    }
  }
}

void Soup::note(uint32_t p, const Place& place, bool write) {
  accesses_[origin(place)].push_back({p, time_[p], write});
}

}  // namespace mscclc::random_programs
