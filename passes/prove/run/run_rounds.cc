// Rounds of pipelines: loops that tie each other go in step, and come after those that give to
// them. A run that gets on so shows that any number of rounds does (lemma R1).
#include <fmt/format.h>

#include "passes/prove/model/premise.h"
#include "passes/prove/run/run.h"

namespace mscclc::proof {

/// Begins a round of a loop of the program, or holds the block until it may.
bool Run::begin_round(uint32_t process, uint32_t loop) {
  const uint32_t number = groups_.loop(process, loop);
  const uint32_t group = groups_.group(number);
  if (in_step_ && begun_[number] == steps_[group].opened) {
    steps_[group].held.push_back(process);
    open_round(group);
    return false;
  }
  blocks_[process].loop = number;
  ++begun_[number];
  return true;
}

/// Lets all loops of a group begin a round, if all have come to it, and all that give to them have
/// done theirs.
void Run::open_round(uint32_t group) {
  Step& step = steps_[group];
  if (!premise(Premise::a_group_begins_together, step.held.size() == groups_.groups()[group].loops))
    return;
  for (const uint32_t giver : groups_.groups()[group].upstream) {
    if (!premise(Premise::upstream_rounds_first, steps_[giver].done > step.opened)) return;
  }
  ++step.opened;
  wake_held(group);
}

void Run::end_round(Block& block) {
  const uint32_t group = groups_.group(block.loop);
  block.loop = kNone;
  Step& step = steps_[group];
  if (++step.ahead < groups_.groups()[group].loops) return;
  step.ahead = 0;
  ++step.done;
  if (!in_step_) return;
  for (const uint32_t taker : groups_.groups()[group].downstream) open_round(taker);
}

void Run::wake_held(uint32_t group) {
  for (const uint32_t process : std::exchange(steps_[group].held, {})) wake(process);
}

/// Nothing moves any more: lets loops go on out of step, if any is held.
bool Run::release_held() {
  if (!in_step_) return false;
  in_step_ = false;
  for (uint32_t group = 0; group < steps_.size(); ++group) {
    for (const uint32_t process : steps_[group].held) {
      const Block& block = blocks_[process];
      released_.push_back({process, block.now, block.op, calls_[block.rank]});
    }
    wake_held(group);
  }
  return !released_.empty();
}

void Run::report_out_of_step() {
  Finding& finding = add_finding(Finding::Kind::out_of_step);
  finding.waiting = released_;
  finding.first = released_.front();
}

/// Which use of a unit of scratch: by which group of loops. (Each call cuts in ways of its own.)
uint32_t Run::turn_of(const Block& block) const { return 1 + groups_.group(block.loop); }

/// Which round, and which piece of its bytes, the `k`-th chunk of an operand is moved in; 0 outside
/// pipelines.
uint64_t Run::round_of(const Block& block, const Op& op, const Operand& o, uint32_t k) {
  if (op.loop == kNone) return 0;
  const uint64_t call = instance(block.rank, calls_[block.rank]);
  const Extent extent = cuts_.extent(op, 0, k, o.count, block.round, 0, call);
  return uint64_t{extent.way} << 32 | extent.piece;
}

}  // namespace mscclc::proof
