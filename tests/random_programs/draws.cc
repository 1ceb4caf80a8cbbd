#include "tests/random_programs/draws.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mscclc::random_programs {
namespace {

uint64_t draw_rounds(const Program& program, Dice& dice) {
  std::vector<uint64_t> edges = {0, 1, 2, 3};
  for (const Rank& rank : program.ranks) {
    for (const Buffer& b : rank.buffers) {
      if (b.units != 0) edges.insert(edges.end(), {b.units - 1, b.units, b.units + 1});
    }
    for (const Semaphore& s : rank.semaphores) {
      edges.insert(edges.end(), {s.initial, s.initial + 1});
    }
  }
  switch (dice.below(4)) {
    case 0:
      return dice.below(6);
    case 1:
      return 4 + dice.below(60);
    default:
      return edges[dice.below(static_cast<uint32_t>(edges.size()))];
  }
}

/// Most of what goes wrong does so if one thing is late, or two are, and all else is in order.
void hold_some(const Program& program, RunSpec& spec, Dice& dice) {
  using What = Hold::What;
  static constexpr What kWhats[] = {What::access, What::access, What::op,  What::op,
                                    What::proxy,  What::proxy,  What::call};
  const uint32_t holds = 1 + dice.below(2);
  for (uint32_t i = 0; i < holds; ++i) {
    const uint32_t rank = dice.below(static_cast<uint32_t>(program.ranks.size()));
    const auto ops = static_cast<uint32_t>(program.ranks[rank].ops.size());
    if (ops == 0) continue;
    spec.adversary->holds.push_back({.what = kWhats[dice.below(7)],
                                     .rank = rank,
                                     .op = dice.below(ops),
                                     .call = dice.below(spec.iterations)});
  }
  if (!one_in(dice, 3)) spec.schedule_seed = 0;
}

}  // namespace

uint64_t draw_bytes(const Program& program, Dice& dice) {
  const uint64_t chunks = std::max<uint64_t>(1, program.contract.part_chunks());
  if (program.loops.empty()) {
    static constexpr uint64_t kSmall[] = {0, 1, 4, 16, 17, 20, 32, 52, 100, 120, 121, 260, 500};
    return kSmall[dice.below(13)] * (one_in(dice, 2) ? chunks : 1);
  }
  const Loop& loop = program.loops[dice.below(static_cast<uint32_t>(program.loops.size()))];
  uint64_t bytes = draw_rounds(program, dice) * loop.unit * chunks;
  switch (dice.below(4)) {
    case 0:
      return bytes + dice.below(17);
    case 1:
      return bytes - std::min<uint64_t>(bytes, dice.below(17));
    default:
      return bytes;
  }
}

RunSpec draw_run(const Program& program, Dice& dice) {
  RunSpec spec;
  const Contract& contract = program.contract;
  const bool may = contract.can_alias() && contract.in_place != InPlace::no;
  spec.in_place = contract.in_place == InPlace::yes || (may && one_in(dice, 2));
  spec.dtype = program.select.dtypes.empty() && one_in(dice, 3) ? Dtype::u8 : Dtype::f32;
  spec.bytes = draw_bytes(program, dice);
  spec.iterations = 2 + dice.below(3);
  spec.schedule_seed = one_in(dice, 8) ? 0 : dice.next();
  if (!one_in(dice, 6)) spec.adversary = Adversary{.strands = 1 + dice.below(3)};
  if (spec.adversary && one_in(dice, 3)) hold_some(program, spec, dice);
  if (!program.functions.empty()) {
    spec.dtype = Dtype::f32;  // rows are of floats
    spec.rows_apart = one_in(dice, 2);
  }
  return spec;
}

std::string describe_schedule(const RunSpec& spec) {
  std::string text =
      fmt::format("{}, {}, schedule {}, ", info(spec.dtype).name,
                  spec.in_place.value_or(false) ? "in place" : "out of place", spec.schedule_seed);
  if (spec.rows_apart.value_or(false)) text += "row functions apart, ";
  if (!spec.adversary) return text + "no adversary";
  text += fmt::format("{} strands", spec.adversary->strands);
  for (const Hold& h : spec.adversary->holds) {
    text += fmt::format(", {} {} of rank {} late in call {}", name(h.what), h.op, h.rank, h.call);
  }
  return text;
}

}  // namespace mscclc::random_programs
