// How the parts are joined, and how what several builders made becomes one: those that had the same
// declarations and did the ops of different ranks. What is numbered in the order of its first use
// gets the numbers that one builder would have given.
#include "compiler/builder/builder_state.h"

#include <fmt/format.h>

#include <utility>

#include "compiler/builder/final_checks.h"

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
    : reports_(diagnostics, origin, sources),
      draft_(reports_),
      budget_(reports_),
      header_(reports_, draft_),
      owned_(reports_, draft_, budget_),
      parts_(reports_, draft_, budget_, header_, owned_) {}

bool BuilderState::collective(const CollectiveSpec& spec) {
  if (!header_.collective(spec)) return false;
  owned_.set_ranks(draft_.ranks());
  return true;
}

void BuilderState::enter_rank(uint32_t rank) {
  Places& places = parts_.places();
  if (rank >= draft_.ranks()) {
    places.no_place();
    places.leave_pipeline();
    reports_.fail("rank", {},
                  fmt::format("rank {} is not a rank; there are {}", rank, draft_.ranks()));
    return;
  }
  places.leave_rank();
  if (draft_.enter(rank)) owned_.begin_rank();
  places.enter_rank();
}

void BuilderState::leave_ranks() {
  parts_.places().leave_rank();
  draft_.out = nullptr;
}

void BuilderState::seal() {
  if (draft_.sealed) return;
  owned_.seal();
  parts_.seal();
}

bool BuilderState::take(BuilderState& part, RankRange of, const std::vector<uint32_t>& sites) {
  if (!budget_.take(part.budget_)) return false;
  if (!take_units(draft_.program, part.draft_.program)) return false;
  for (uint32_t r = of.begin; r < of.end; ++r) draft_.set_entered(r, part.draft_.entered(r));
  take_ops(draft_.program, part.draft_.program, of, sites, parts_.take(part.parts_, of));
  return true;
}

bool BuilderState::check() {
  if (std::exchange(checked_, true)) return !reports_.failed();
  if (!header_.has_contract()) {
    if (!reports_.failed()) reports_.fail("no-collective", {}, "no 'collective' line");
    return false;
  }
  seal();
  return make_final_checks(*this);
}

}  // namespace mscclc
