// How the parts are joined, and how what several builders made becomes one: those that had the same
// declarations and did the ops of different ranks. What is numbered in the order of its first use
// gets the numbers that one builder would have given.
#include "compiler/builder/builder_state.h"

#include <fmt/format.h>

namespace mscclc {
namespace {

bool is_identity(const std::vector<uint32_t>& numbers) {
  for (uint32_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != i) return false;
  }
  return true;
}

/// A buffer of units has those of the pipeline that uses it first, of whatever rank. False if its
/// pipelines differ.
bool take_units(Program& program, const Program& part) {
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    std::vector<Buffer>& buffers = program.ranks[r].buffers;
    for (size_t b = kFirstScratch; b < buffers.size(); ++b) {
      const uint64_t unit = part.ranks[r].buffers[b].unit;
      if (buffers[b].unit == 0) buffers[b].unit = unit;
      if (unit != 0 && unit != buffers[b].unit) return false;
    }
  }
  return true;
}

/// `ours`: by group of `part`.
void take_ops(Program& program, Program& part, RankRange of, const std::vector<uint32_t>& sites,
              const std::vector<uint32_t>& ours) {
  const auto loops = static_cast<uint32_t>(program.loops.size());
  const bool same = loops == 0 && is_identity(ours);
  const bool same_sites = is_identity(sites);
  for (uint32_t r = of.begin; r < of.end; ++r) {
    std::vector<Op>& ops = program.ranks[r].ops;
    ops.swap(part.ranks[r].ops);
    program.ranks[r].blocks = part.ranks[r].blocks;
    for (Op& op : ops) {
      if (same) break;
      if (op.loop != kNone) op.loop += loops;
      if (op.group != kNone) op.group = ours[op.group];
    }
  }
  if (!same_sites) {
    part.locations.for_each([&](Location& l) { l.site = sites[l.site]; });
  }
  program.loops.insert(program.loops.end(), part.loops.begin(), part.loops.end());
  program.adopt_arenas(part);
}

}  // namespace

BuilderState::BuilderState(Diagnostics& diagnostics, Origin* origin, Sources* sources)
    : reports(diagnostics, origin, sources),
      draft(reports),
      budget(reports),
      header(reports, draft),
      owned(reports, draft, budget),
      places(reports, draft, budget),
      locations(reports, draft),
      tallies(reports, draft, owned.members(), places),
      barriers(reports, draft, budget, places, locations),
      refs(reports, draft, owned.names(), owned.layouts(), owned.members()),
      op_checks(reports, draft, owned.members(), owned.pairing(), places),
      chunk_checks(reports, draft, header, owned.names(), owned.layouts(), places),
      ops(reports, draft, budget, places, locations, tallies, op_checks, chunk_checks) {}

bool BuilderState::collective(const CollectiveSpec& spec) {
  if (!header.collective(spec)) return false;
  owned.set_ranks(draft.ranks());
  return true;
}

void BuilderState::enter_rank(uint32_t rank) {
  if (rank >= draft.ranks()) {
    places.no_place();
    places.leave_pipeline();
    reports.fail("rank", {},
                 fmt::format("rank {} is not a rank; there are {}", rank, draft.ranks()));
    return;
  }
  places.leave_rank();
  if (draft.enter(rank)) owned.begin_rank();
  places.enter_rank();
}

void BuilderState::leave_ranks() {
  places.leave_rank();
  draft.out = nullptr;
}

void BuilderState::seal() {
  if (draft.sealed) return;
  owned.seal();
  tallies.seal();
}

bool BuilderState::take(BuilderState& part, RankRange of, const std::vector<uint32_t>& sites) {
  if (!budget.take(part.budget)) return false;
  if (!take_units(draft.program, part.draft.program)) return false;
  tallies.take(part.tallies, of, places.take_round_classes(part.places));
  for (uint32_t r = of.begin; r < of.end; ++r) draft.set_entered(r, part.draft.entered(r));
  take_ops(draft.program, part.draft.program, of, sites, places.take_groups(part.places));
  barriers.take(part.barriers);
  places.take_empty_blocks(part.places);
  return true;
}

}  // namespace mscclc
