#include "executor/cuda/testing/ranks_signals.h"

namespace mscclc::cuda {

using device::Barrier;
using device::ChannelEnd;
using device::DeviceOp;
using device::DeviceOperand;
using device::StepKind;

void RanksSignals::number_channels(DeviceProgram& device) {
  ranks_.resize(program_.ranks.size());
  channels_ = 0;
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].first_channel = channels_;
    number_channels(device.ranks[r], channels_);
    channels_ += static_cast<uint32_t>(program_.ranks[r].channels.size());
  }
}

void RanksSignals::number_channels(RankProgram& program, uint32_t first) const {
  for (DeviceOperand& operand : program.operands) {
    if (operand.channel != device::kNoChannel) operand.channel += first;
  }
  for (const DeviceOp& op : program.ops) {
    const bool channels =
        op.kind == StepKind::signal || op.kind == StepKind::wait || op.kind == StepKind::flush;
    if (!channels) continue;
    for (uint32_t t = 0; t < op.count; ++t) program.targets[op.first + t] += first;
  }
}

// The ends of a rank's channels begin with the signals of their credits.
bool RanksSignals::allocate(const DeviceProgram& device, Diagnostics& d) {
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    std::vector<uint64_t> credits, semaphores;
    std::vector<Barrier> barriers;
    for (const Channel& end : program_.ranks[r].channels) credits.push_back(end.credits);
    for (const Semaphore& s : program_.ranks[r].semaphores) semaphores.push_back(s.initial);
    for (const BarrierMembers& b : device.ranks[r].barriers) {
      barriers.push_back({0, b.blocks.size()});
    }
    if (!ranks_[r].arrived.upload(credits, d) || !ranks_[r].semaphores.upload(semaphores, d) ||
        !ranks_[r].barriers.upload(barriers, d)) {
      return false;
    }
  }
  return true;
}

/// The count of signals at the other end of a channel, or nullptr.
uint64_t* RanksSignals::partner_of(const Channel& end) const {
  return end.partner == kNone ? nullptr : ranks_[end.peer].arrived.data<uint64_t>() + end.partner;
}

std::vector<ChannelEnd> RanksSignals::ends() const {
  std::vector<ChannelEnd> all;
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    uint64_t* arrived = ranks_[r].arrived.data<uint64_t>();
    for (const Channel& end : program_.ranks[r].channels) {
      all.push_back({arrived++, partner_of(end), 0, end.kind == ChannelKind::port});
    }
  }
  return all;
}

}  // namespace mscclc::cuda
