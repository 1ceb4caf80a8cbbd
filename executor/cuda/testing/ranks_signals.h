// By what the blocks of all ranks order themselves: channels, whose ends are numbered over all
// ranks, semaphores and barriers.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/cuda/testing/memory.h"
#include "executor/launch.h"
#include "executor/lower.h"
#include "ir/program/program.h"

namespace mscclc::cuda {

class RanksSignals {
 public:
  /// The program must outlive it.
  explicit RanksSignals(const Program& program) : program_(program) {}

  /// Makes the channels that programs of ranks name by index those of all ranks.
  void number_channels(DeviceProgram& device);
  uint32_t channels() const { return channels_; }  ///< of all ranks
  /// Of a rank, among those of all.
  uint32_t first_channel(uint32_t rank) const { return ranks_[rank].first_channel; }

  /// As they are before a first call. REQUIRES: number_channels().
  [[nodiscard]] bool allocate(const DeviceProgram& device, Diagnostics& d);
  /// REQUIRES: allocate(); so in what follows.
  std::vector<device::ChannelEnd> ends() const;
  uint64_t* semaphores(uint32_t rank) const { return ranks_[rank].semaphores.data<uint64_t>(); }
  device::Barrier* barriers(uint32_t rank) const {
    return ranks_[rank].barriers.data<device::Barrier>();
  }

 private:
  struct OfRank {
    DeviceMemory arrived, semaphores, barriers;
    uint32_t first_channel = 0;
  };

  void number_channels(RankProgram& program, uint32_t first) const;
  uint64_t* partner_of(const Channel& end) const;

  const Program& program_;
  std::vector<OfRank> ranks_;
  uint32_t channels_ = 0;
};

}  // namespace mscclc::cuda
