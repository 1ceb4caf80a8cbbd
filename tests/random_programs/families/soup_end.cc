// How a soup ends: outputs are filled, callers take their buffers, and all of it is written down.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/random_programs/families/soup.h"

namespace mscclc::random_programs {

void Soup::fill_outputs() {
  for (uint32_t r = 0; r < ranks_; ++r) {
    for (uint32_t i = 0; i < outputs(); ++i) {
      const Place output = {r, fmt::format("output[{}]", i)};
      if (gathers_) {
        gather(output, {i % positions_, {i / positions_}});
        continue;
      }
      if (value_at(output).known() || one_in(dice_, 2)) continue;
      const auto from = source(r, i, {});
      const uint32_t p = process(r, any(blocks_));
      if (!from || origin(*from) == output) continue;
      run(p, "copy", {near(output)}, {near(*from)}, {output}, {*from}, value_at(*from));
    }
  }
}

void Soup::gather(const Place& output, const Value& wanted) {
  if (value_at(output) == wanted) return;
  std::vector<Place> all;
  for (const auto& [place, value] : values_) {
    if (value == wanted && !(place == output)) all.push_back(place);
  }
  if (all.empty()) return;
  const Place from = all[any(static_cast<uint32_t>(all.size()))];
  const bool here = from.rank == output.rank, puts = !here && one_in(dice_, 2);
  const uint32_t p = process(puts ? from.rank : output.rank, any(blocks_));
  run(p,
      here   ? "copy"
      : puts ? "put"
             : "get",
      {puts ? far(p, output) : near(output)}, {here || puts ? near(from) : far(p, from)}, {output},
      {from}, wanted);
}

void Soup::close() {
  if (full_close_) return close_all();
  for (const auto& [place, list] : accesses_) {
    const bool callers = place.name.starts_with("in") || place.name.starts_with("out");
    if (!callers && one_in(dice_, 2)) continue;
    for (const Access& access : std::vector<Access>(list)) {
      const uint32_t r = place.rank;
      if (rank_of(access.process) == r || access.process >= ranks_ * blocks_) continue;
      bool heard = false;
      for (uint32_t b = 0; b < blocks_; ++b) {
        heard |= known_[process(r, b)][access.process] >= access.time;
      }
      if (!heard && !slips()) inform(access.process, process(r, any(blocks_)), false);
    }
  }
}

void Soup::close_all() {
  for (uint32_t r = 0; r < ranks_; ++r) meet(r);
  for (uint32_t r = 0; r < ranks_; ++r) sync(process(r, 0));
  const auto each_pair = [&](const std::string& what) {
    for (uint32_t r = 0; r < ranks_; ++r) {
      for (uint32_t q = 0; q < ranks_; ++q) {
        if (q == r) continue;
        if (one_in(dice_, 3 * slack_)) continue;
        op(process(r, 0), what + channel(process(r, 0), process(q, 0), false));
      }
    }
  };
  each_pair("signal ");
  each_pair("wait ");
}

void Soup::contract() {
  const std::string placed = either_ ? "either" : "false";
  if (with_packets_ && format_ == "sentinel") sketch_.types = "[f32]";
  if (gathers_) {
    sketch_.collective =
        fmt::format("allgather(ranks: {}, chunks: {}, inplace: {})", ranks_, positions_, placed);
    return;
  }
  for (uint32_t r = 0; r < ranks_; ++r) {
    for (uint32_t i = 0; i < positions_; ++i) {
      const Value value = value_at({r, fmt::format("output[{}]", i)});
      if (!value.known() || value.position != i) continue;
      for (uint32_t c = i; c <= (wide_ ? 1 : i); ++c) promise(r, c, value.ranks);
    }
  }
  sketch_.collective = fmt::format("custom(ranks: {0}, input: {1}, output: {1}, inplace: {2})",
                                   ranks_, wide_ ? 2 : positions_, placed);
}

void Soup::promise(uint32_t r, uint32_t c, const std::vector<uint32_t>& ranks) {
  const std::string value = ranks.size() == 1 ? fmt::format("input[{}] at {}", c, ranks[0])
                                              : fmt::format("reduce(input[{}] at p for p in [{}])",
                                                            c, fmt::join(ranks, ", "));
  sketch_.promises.push_back(fmt::format("output[{}] at {} = {}", c, r, value));
}

std::string Soup::completed(std::string text) const {
  if (text.find("<-") == std::string::npos) return text;
  if (text.find("reduce") != std::string::npos) {
    const size_t part = text.find(" part:"), at = std::min(part, text.size());
    text.insert(at, part == std::string::npos ? " op: sum" : " op: sum,");
  }
  for (size_t at = 0; wide_ && (at = text.find("[0]", at)) != std::string::npos;) {
    text.replace(at, 3, "[0..2]");
  }
  return text;
}

void Soup::assemble() {
  cut_here();
  std::vector<bool> pipes;
  for (size_t i = 0; i < cuts_.size(); ++i) {
    pipes.push_back(piped_ && !(cuts_.size() > 1 && one_in(dice_, 3)));
  }
  const uint32_t other = one_in(dice_, 2) ? unit_ : 16 * (1 + any(3));
  for (uint32_t p = 0; p < ranks_ * blocks_; ++p) {
    RankSketch& rank = sketch_.ranks[rank_of(p)];
    size_t begin = 0;
    for (size_t i = 0; i < cuts_.size(); ++i) {
      std::vector<std::string> ops;
      for (; begin < cuts_[i][p]; ++begin) ops.push_back(completed(body_[p][begin]));
      if (ops.empty()) continue;
      if (!pipes[i]) {
        rank.ops(block_of(p), ops);
      } else {
        rank.blocks[block_of(p)].push_back(
            {i == 0 ? unit_ : other, static_cast<uint32_t>(i), ops, wide_ ? 2u : 1u});
      }
    }
  }
  sketch_.ir_only = cuts_.size() > 1 && piped_;
}

}  // namespace mscclc::random_programs
