#include "passes/prove/processes/loop_rounds.h"

#include <utility>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {

LoopRounds::LoopRounds(const LoopGroups& groups, const Cuts& cuts, const CallOrder& calls,
                       ThreadBlocks& blocks, bool in_step)
    : groups_(groups),
      cuts_(cuts),
      calls_(calls),
      blocks_(blocks),
      progress_(groups.groups().size()),
      begun_(groups.loops(), 0),
      in_step_(in_step) {}

bool LoopRounds::begin(uint32_t process, uint32_t loop) {
  const uint32_t number = groups_.loop(process, loop);
  const uint32_t group = groups_.group(number);
  if (in_step_ && begun_[number] == progress_[group].opened) {
    progress_[group].held.push_back(process);
    open(group);
    return false;
  }
  blocks_[process].loop = number;
  ++begun_[number];
  return true;
}

/// Lets all loops of a group begin a round, if all have come to it, and all that give to them have
/// done theirs.
void LoopRounds::open(uint32_t group) {
  Progress& progress = progress_[group];
  if (!premise(Premise::a_group_begins_together,
               progress.held.size() == groups_.groups()[group].loops))
    return;
  for (const uint32_t giver : groups_.groups()[group].upstream) {
    if (!premise(Premise::upstream_rounds_first, progress_[giver].done > progress.opened)) return;
  }
  ++progress.opened;
  wake_held(group);
}

void LoopRounds::end(ThreadBlock& block) {
  const uint32_t group = groups_.group(block.loop);
  block.loop = kNone;
  Progress& progress = progress_[group];
  if (++progress.ahead < groups_.groups()[group].loops) return;
  progress.ahead = 0;
  ++progress.done;
  if (!in_step_) return;
  for (const uint32_t taker : groups_.groups()[group].downstream) open(taker);
}

void LoopRounds::next_op(uint32_t process, const std::vector<Op>& ops) {
  ThreadBlock& block = blocks_[process];
  const uint32_t loop = ops[block.op].loop;
  ++block.now;
  block.operand = 0;
  ++block.op;
  if (loop == kNone || (block.op < block.end && ops[block.op].loop == loop)) return;
  end(block);
  if (++block.round == count(loop)) {
    block.round = 0;
    return;
  }
  while (block.op > block.begin && ops[block.op - 1].loop == loop) --block.op;
}

void LoopRounds::wake_held(uint32_t group) {
  for (const uint32_t process : std::exchange(progress_[group].held, {})) blocks_.wake(process);
}

bool LoopRounds::release_held() {
  if (!in_step_) return false;
  in_step_ = false;
  for (uint32_t group = 0; group < progress_.size(); ++group) {
    for (const uint32_t process : progress_[group].held) {
      const ThreadBlock& block = blocks_[process];
      released_.push_back({process, block.now, block.op, calls_.now(block.rank)});
    }
    wake_held(group);
  }
  return !released_.empty();
}

void LoopRounds::report(FindingList& findings) const {
  if (premise(Premise::in_step, released_.empty())) return;
  Finding& finding = findings.add(Finding::Kind::out_of_step);
  finding.waiting = released_;
  finding.first = released_.front();
}

}  // namespace mscclc::proof
