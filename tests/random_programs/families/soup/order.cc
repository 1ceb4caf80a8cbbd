#include "tests/random_programs/families/soup/order.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc::random_programs::soup {

void Order::begin() {
  time_.assign(shape_.processes(), 0);
  settled_.assign(shape_.processes(), 0);
  known_.assign(shape_.processes(), Clock(shape_.processes(), 0));
  for (uint32_t r = 0; r < shape_.ranks; ++r) {
    time_[shape_.caller(r)] = settled_[shape_.caller(r)] = 1;
    for (uint32_t b = 0; b < shape_.blocks; ++b) known_[shape_.process(r, b)][shape_.caller(r)] = 1;
    for (uint32_t i = 0; i < shape_.outputs(); ++i) {
      accesses_[{r, fmt::format("output[{}]", i)}].push_back({shape_.caller(r), 1, true});
    }
    for (uint32_t i = 0; i < shape_.positions; ++i) {
      const RankChunk input = {r, fmt::format("input[{}]", i)};
      accesses_[shape_.origin(input)].push_back({shape_.caller(r), 1, true});
    }
  }
}

void Order::sync(uint32_t p) {
  if (slips()) return;
  text_.op(p, "sync");
  settled_[p] = time_[p];
}

void Order::inform(uint32_t q, uint32_t p, bool relaxed) {
  if (shape_.rank_of(q) == shape_.rank_of(p)) {
    if (one_in(dice_, 2)) return meet(shape_.rank_of(p));
    const std::string name = fmt::format("e{}{}", shape_.block_of(q), shape_.block_of(p));
    text_.use_semaphore(shape_.rank_of(p), name);
    sync(q);
    text_.op(q, "release " + name);
    text_.op(p, "acquire " + name);
  } else {
    const std::string name = text_.channel(q, p, !relaxed && one_in(dice_, 5));
    const std::string how = relaxed ? " relaxed" : "";
    if (!relaxed) sync(q);
    text_.op(q, "signal " + name + how);
    text_.op(p, "wait " + name + how);
  }
  sync(p);
  learn(p, q, relaxed);
}

void Order::learn(uint32_t p, uint32_t q, bool relaxed) {
  if (relaxed) {
    known_[p][shape_.caller(shape_.rank_of(q))] = 1;
    return;
  }
  for (uint32_t i = 0; i < shape_.processes(); ++i) {
    known_[p][i] = std::max(known_[p][i], known_[q][i]);
  }
  known_[p][q] = std::max(known_[p][q], time_[q]);
}

void Order::meet(uint32_t rank) {
  if (shape_.blocks < 2) return;
  const uint32_t a = shape_.process(rank, 0), b = shape_.process(rank, 1);
  for (const uint32_t p : {a, b}) text_.op(p, "barrier 0..2");
  learn(a, b, false);
  learn(b, a, false);
  settled_[a] = time_[a];
  settled_[b] = time_[b];
}

void Order::touch(uint32_t p, const RankChunk& place, bool write) {
  std::vector<Access>& list = accesses_[shape_.origin(place)];
  for (size_t i = 0; i < list.size(); ++i) {
    const Access old = list[i];
    if (!write && !old.write) continue;
    if (old.process == p) {
      if (settled_[p] < old.time) sync(p);
      continue;
    }
    if (known_[p][old.process] >= old.time || slips()) continue;
    const uint32_t r = shape_.rank_of(old.process);
    if (old.process == shape_.caller(r)) {
      inform(shape_.process(r, any(shape_.blocks)), p, !one_in(dice_, 3));
    } else {
      inform(old.process, p, slips());
    }
  }
}

void Order::note(uint32_t p, const RankChunk& place, bool write) {
  accesses_[shape_.origin(place)].push_back({p, time_[p], write});
}

void Order::close() {
  if (shape_.full_close) return close_all();
  for (const auto& [place, list] : accesses_) {
    const bool callers = place.name.starts_with("in") || place.name.starts_with("out");
    if (!callers && one_in(dice_, 2)) continue;
    for (const Access& access : std::vector<Access>(list)) {
      const uint32_t r = place.rank;
      if (shape_.rank_of(access.process) == r || access.process >= shape_.ranks * shape_.blocks)
        continue;
      bool heard = false;
      for (uint32_t b = 0; b < shape_.blocks; ++b) {
        heard |= known_[shape_.process(r, b)][access.process] >= access.time;
      }
      if (!heard && !slips()) inform(access.process, shape_.process(r, any(shape_.blocks)), false);
    }
  }
}

void Order::close_all() {
  for (uint32_t r = 0; r < shape_.ranks; ++r) meet(r);
  for (uint32_t r = 0; r < shape_.ranks; ++r) sync(shape_.process(r, 0));
  const auto each_pair = [&](const std::string& what) {
    for (uint32_t r = 0; r < shape_.ranks; ++r) {
      for (uint32_t q = 0; q < shape_.ranks; ++q) {
        if (q == r) continue;
        if (one_in(dice_, 3 * shape_.slack)) continue;
        text_.op(shape_.process(r, 0),
                 what + text_.channel(shape_.process(r, 0), shape_.process(q, 0), false));
      }
    }
  };
  each_pair("signal ");
  each_pair("wait ");
}

}  // namespace mscclc::random_programs::soup
