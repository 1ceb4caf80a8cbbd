#include "executor/simulator/other_side.h"

#include <algorithm>
#include <cstring>

#include "executor/oracle/values.h"
#include "ir/program/flag_regions.h"
#include "ir/support/precondition.h"

namespace mscclc {

OtherSide::OtherSide(Scheduler& scheduler, const Program& program, uint32_t rank, SimRank& state,
                     const Chunking& chunking, Buffers buffers)
    : scheduler_(scheduler), program_(program), rank_(rank), state_(state) {
  precondition(!program.flags.empty());
  for (uint32_t a = 0; a < program.flags.size(); ++a) {
    for (uint32_t f = 0; f < program.flags[a].count; ++f) {
      const FlagRegion region = flag_region(program, rank, a, f);
      const Side side = region.buffer == kInput ? Side::input : Side::output;
      uint8_t* const data = region.buffer == kInput ? buffers.input : buffers.output;
      uint64_t begin = 0, end = 0;
      if (region.count > 0) {
        const uint32_t last = region.first + region.count - 1;
        begin = chunking.offset(side, rank, region.first);
        end = chunking.offset(side, rank, last) + chunking.length(side, rank, last);
      }
      flags_.push_back({a, f, data + begin, end - begin, {}, {}});
    }
  }
  for (Flag& flag : flags_) {
    for (uint32_t d = 0; d < flags_.size() && !array_of(flag).of_output; ++d) {
      const Flag& other = flags_[d];
      if (!array_of(other).of_output) continue;
      if (may_wait_for(program, flag.array, flag.flag, other.array, other.flag)) {
        flag.waits_for.push_back(d);
      }
    }
  }
}

void OtherSide::join(StrandWorld& world, std::vector<Clock>& flags, uint32_t world_rank,
                     uint32_t process) {
  world_ = &world;
  clocks_ = &flags;
  world_rank_ = world_rank;
  process_ = process;
}

void OtherSide::before_call() {
  for (Flag& flag : flags_) {
    if (array_of(flag).of_output) continue;
    flag.kept.assign(flag.region, flag.region + flag.bytes);
    if (flag.bytes > 0) std::memset(flag.region, kUnwrittenByte, flag.bytes);
  }
}

void OtherSide::serve(uint32_t number, uint64_t calls) {
  for (uint64_t i = 0; i < calls; ++i) {
    if (state_.started <= i) scheduler_.wait({Wait::Test::above64, &state_.started, i});
    array_of(flags_[number]).of_output ? take(number, i) : raise(number, i);
    ++served_;
  }
}

void OtherSide::wait_for(uint32_t number, uint64_t call) {
  SimFlag& flag = state_.flags[number];
  const Wait wait{Wait::Test::above64, &flag.raised, (call + 1) * flag.each - 1};
  if (!wait.over()) scheduler_.wait(wait);
}

/// As late as it can be, and the last flags first; under a seed, at any time and in any order.
void OtherSide::linger(uint32_t number) {
  if (!scheduler_.shuffles()) return scheduler_.linger(flags() - number);
  Dice& dice = scheduler_.dice();
  if (dice.below(2) == 0) return scheduler_.linger(1 + dice.below(flags()));
  for (uint32_t n = dice.below(16); n > 0; --n) scheduler_.yield();
}

/// With strands: what it knows of is done before it touches the same bytes.
void OtherSide::touch(const Flag& flag, bool write) {
  if (world_ == nullptr) return;
  Clock& clock = world_->clocks[process_];
  clock.join(world_->done[world_rank_]);
  const Touch touch[] = {{flag.region, flag.bytes, write}};
  world_->memory.settle(clock, touch);
  clock.tick(process_);
}

void OtherSide::raise(uint32_t number, uint64_t call) {
  Flag& flag = flags_[number];
  for (const uint32_t other : flag.waits_for) wait_for(other, call);
  linger(number);
  SimFlag& word = state_.flags[number];
  for (uint64_t n = 1; n <= word.each; ++n) {  // the last part of the region comes with the last
    if (n == word.each) {
      touch(flag, true);
      std::ranges::copy(flag.kept, flag.region);
      if (world_ != nullptr) (*clocks_)[number].join(world_->clocks[process_]);
    }
    ++word.raised;
    scheduler_.yield();
  }
}

void OtherSide::take(uint32_t number, uint64_t call) {
  Flag& flag = flags_[number];
  wait_for(number, call);
  if (world_ != nullptr) world_->clocks[process_].join((*clocks_)[number]);
  touch(flag, false);
  flag.kept.assign(flag.region, flag.region + flag.bytes);
}

void OtherSide::await_end(uint64_t call) {
  const Wait wait{Wait::Test::above64, &served_, (call + 1) * flags() - 1};
  if (!wait.over()) scheduler_.wait(wait);
}

void OtherSide::after_call() {
  for (Flag& flag : flags_) {
    if (!array_of(flag).of_output || flag.was_early) continue;
    if (std::ranges::equal(flag.kept, std::span(flag.region, flag.bytes))) continue;
    flag.was_early = true;
    early_.push_back(text(flag));
  }
}

std::string OtherSide::text(const Flag& flag) const {
  return flag_text(program_, flag.array, flag.flag) + " of rank " + std::to_string(rank_);
}

std::vector<std::string> OtherSide::not_raised() const {
  std::vector<std::string> texts;
  for (uint32_t n = 0; n < flags(); ++n) {
    const SimFlag& word = state_.flags[n];
    const bool complete = word.raised >= state_.started * word.each;
    if (array_of(flags_[n]).of_output && !complete) texts.push_back(text(flags_[n]));
  }
  return texts;
}

}  // namespace mscclc
