#include "tests/random_programs/sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/random_programs/families/edges.h"
#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

/// Most are collectives that share scratch with others; some are of the families of single plans.
Sketch draw_sketch(Dice& dice, uint32_t copies) {
  using Family = Sketch (*)(Dice&);
  static constexpr Family kFamilies[] = {make_packets, make_exchanges, make_flows,
                                         make_tokens,  make_relays,    make_growing};
  Sketch sketch = make_member(dice, copies);
  if (one_in(dice, 4)) {
    sketch = kFamilies[dice.below(6)](dice);
    sketch.reuse_scratch = !one_in(dice, 4);
  }
  if (one_in(dice, 4)) cross_edge(sketch, dice);
  return sketch;
}

/// A plan of its own, or one of the set once more, perhaps changed: that has the same chunks.
SetMember draw_member(const RandomSet& set, Dice& dice, uint32_t copies) {
  SetMember member;
  const bool again = !set.members.empty() && one_in(dice, 3);
  if (again) {
    member = set.members[dice.below(static_cast<uint32_t>(set.members.size()))];
    if (one_in(dice, 2)) cross_edge(member.random.sketch, dice);
    return member;
  }
  member.random.sketch = draw_sketch(dice, copies);
  static constexpr Form kForms[] = {Form::ir, Form::ir, Form::foreign, Form::ordered};
  member.random.form = member.random.sketch.ir_only ? Form::ir : kForms[dice.below(4)];
  member.random.by_json = one_in(dice, 4);
  return member;
}

/// Different ranks of the world, for each rank of the plan one.
std::vector<uint32_t> draw_ranks(size_t count, uint32_t world, Dice& dice) {
  std::vector<uint32_t> all(world);
  for (uint32_t r = 0; r < world; ++r) all[r] = r;
  const bool in_order = one_in(dice, 2);
  for (size_t i = world; i > 1 && !in_order; --i) {
    std::swap(all[i - 1], all[dice.below(static_cast<uint32_t>(i))]);
  }
  all.resize(count);
  return all;
}

constexpr SetFamily kSetFamilies[] = {{"sets", random_set}, {"overlays", random_overlay}};

}  // namespace

std::span<const SetFamily> set_families() { return kSetFamilies; }

const SetFamily* find_set_family(std::string_view name) {
  const SetFamily* const found = std::ranges::find(kSetFamilies, name, &SetFamily::name);
  return found == std::end(kSetFamilies) ? nullptr : found;
}

std::string RandomSet::text() const {
  std::string text =
      order == CallOrder::one ? "# one order of all calls\n" : "# orders of their own\n";
  for (const SetMember& member : members) {
    text += fmt::format("# on ranks {}{}\n", fmt::join(member.ranks, ", "),
                        member.random.by_json ? ", by JSON" : "");
    for (const std::string& edge : member.random.sketch.edges) text += "# edge: " + edge + '\n';
    text += member.random.text();
  }
  return text;
}

RandomSet random_set(uint64_t seed, uint64_t piece) {
  Dice dice((seed << 40) + piece);
  RandomSet set;
  set.order = one_in(dice, 3) ? CallOrder::own : CallOrder::one;
  const uint32_t copies = one_in(dice, 4) ? 3 : 2, plans = one_in(dice, 5) ? 3 : 2;
  size_t most = 2;
  for (uint32_t i = 0; i < plans; ++i) {
    set.members.push_back(draw_member(set, dice, copies));
    most = std::max(most, set.members.back().random.sketch.ranks.size());
  }
  const uint32_t world = static_cast<uint32_t>(most) + (one_in(dice, 4) ? 1 : 0);
  for (SetMember& member : set.members) {
    member.ranks = draw_ranks(member.random.sketch.ranks.size(), world, dice);
  }
  return set;
}

RandomSet random_overlay(uint64_t seed, uint64_t piece) {
  Dice dice((seed << 40) + piece);
  RandomSet set;
  Overlaid all;
  if (one_in(dice, 3)) all.credits = 1 + dice.below(2);
  if (one_in(dice, all.credits > 0 ? 2 : 10)) all.format = one_in(dice, 5) ? "LL16" : "";
  all.aligns = one_in(dice, 6);
  const uint32_t plans = one_in(dice, 3) ? 3 : 2;
  while (set.members.size() < plans) {
    const bool again = !set.members.empty() && one_in(dice, all.aligns ? 2 : 6);
    SetMember member;
    member.ranks = {0, 1};
    member.random.sketch = again ? set.members[0].random.sketch : make_overlay(dice, all);
    if (again && all.aligns) member.random.sketch.align = 16u << dice.below(4);
    if (one_in(dice, 12)) cross_edge(member.random.sketch, dice);
    set.members.push_back(std::move(member));
  }
  return set;
}

}  // namespace mscclc::random_programs
