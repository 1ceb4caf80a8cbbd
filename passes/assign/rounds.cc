// Whether signals and waits pair up round by round: see chains.h.
#include <algorithm>

#include "passes/assign/chains.h"

namespace mscclc::assign {
namespace {

/// The pipeline an op stands in, as its partner's rank can compare it.
struct PipelinePosition {
  uint32_t nth = 0;  ///< 1 for the rank's first pipeline; 0: none
  uint64_t unit = 0;
  uint32_t chunks = 0;
  bool operator==(const PipelinePosition&) const = default;
};

/// Where the signals, or the waits, of each channel end of each rank stand, in order.
class PipelinePositions {
 public:
  PipelinePositions(const Program& program, Effects effect) : program_(program) {
    turns_.resize(program.ranks.size());
    for (uint32_t r = 0; r < turns_.size(); ++r) read(r, effect);
  }
  const std::vector<PipelinePosition>& of(uint32_t rank, uint32_t channel) const {
    return turns_[rank][channel];
  }

 private:
  void read(uint32_t rank, Effects effect) {
    turns_[rank].resize(program_.ranks[rank].channels.size());
    loops_.clear();
    for (const Op& op : program_.ranks[rank].ops) {
      const PipelinePosition turn = turn_of(op.loop);
      if (!info(op.kind).has(effect)) continue;
      for (const Operand& o : program_.dsts(op)) turns_[rank][o.channel].push_back(turn);
    }
  }

  PipelinePosition turn_of(uint32_t loop) {
    if (loop == kNone) return {};
    const auto found = std::ranges::find(loops_, loop);
    const auto nth = static_cast<uint32_t>(found - loops_.begin());
    if (found == loops_.end()) loops_.push_back(loop);
    return {nth + 1, program_.loops[loop].unit, program_.loops[loop].chunks};
  }

  const Program& program_;
  std::vector<uint32_t> loops_;  ///< of the rank at hand, as they appear
  std::vector<std::vector<std::vector<PipelinePosition>>> turns_;
};

}  // namespace

bool rounds_pair_up(const Program& program) {
  if (program.loops.empty()) return true;
  const PipelinePositions signals(program, kSignals), waits(program, kWaits);
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const std::vector<Channel>& channels = program.ranks[r].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].partner == kNone) continue;
      if (signals.of(r, c) != waits.of(channels[c].peer, channels[c].partner)) return false;
    }
  }
  return true;
}

}  // namespace mscclc::assign
