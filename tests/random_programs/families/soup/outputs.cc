#include "tests/random_programs/families/soup/outputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mscclc::random_programs::soup {

void Outputs::fill() {
  for (uint32_t r = 0; r < shape_.ranks; ++r) {
    for (uint32_t i = 0; i < shape_.outputs(); ++i) {
      const RankChunk output = {r, fmt::format("output[{}]", i)};
      if (shape_.gathers) {
        gather(output, {i % shape_.positions, {i / shape_.positions}});
        continue;
      }
      if (places_.value_at(output).known() || one_in(dice_, 2)) continue;
      const auto from = places_.source(r, i, {});
      const uint32_t p = shape_.process(r, any(shape_.blocks));
      if (!from || shape_.origin(*from) == output) continue;
      steps_.run(p, "copy", {near(output)}, {near(*from)}, {output}, {*from},
                 places_.value_at(*from));
    }
  }
}

void Outputs::gather(const RankChunk& output, const Value& wanted) {
  if (places_.value_at(output) == wanted) return;
  const auto holder = places_.holder(wanted, output);
  if (!holder) return;
  const RankChunk from = *holder;
  const bool here = from.rank == output.rank, puts = !here && one_in(dice_, 2);
  const uint32_t p = shape_.process(puts ? from.rank : output.rank, any(shape_.blocks));
  steps_.run(p,
             here   ? "copy"
             : puts ? "put"
                    : "get",
             {puts ? steps_.far(p, output) : near(output)},
             {here || puts ? near(from) : steps_.far(p, from)}, {output}, {from}, wanted);
}

void Outputs::contract() {
  const std::string placed = shape_.either ? "either" : "false";
  const std::string types = shape_.with_packets && shape_.format == "sentinel" ? "[f32]" : "";
  if (shape_.gathers) {
    text_.set_collective(fmt::format("allgather(ranks: {}, chunks: {}, inplace: {})", shape_.ranks,
                                     shape_.positions, placed),
                         types);
    return;
  }
  for (uint32_t r = 0; r < shape_.ranks; ++r) {
    for (uint32_t i = 0; i < shape_.positions; ++i) {
      const Value value = places_.value_at({r, fmt::format("output[{}]", i)});
      if (!value.known() || value.position != i) continue;
      for (uint32_t c = i; c <= (shape_.wide ? 1 : i); ++c) promise(r, c, value.ranks);
    }
  }
  text_.set_collective(fmt::format("custom(ranks: {0}, input: {1}, output: {1}, inplace: {2})",
                                   shape_.ranks, shape_.wide ? 2 : shape_.positions, placed),
                       types);
}

void Outputs::promise(uint32_t r, uint32_t c, const std::vector<uint32_t>& ranks) {
  const std::string value = ranks.size() == 1 ? fmt::format("input[{}] at {}", c, ranks[0])
                                              : fmt::format("reduce(input[{}] at p for p in [{}])",
                                                            c, fmt::join(ranks, ", "));
  text_.promise(fmt::format("output[{}] at {} = {}", c, r, value));
}

}  // namespace mscclc::random_programs::soup
