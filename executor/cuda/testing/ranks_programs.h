// The programs of all ranks' blocks, as launches take them: for each call that a run queues.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/block_programs.h"
#include "executor/cuda/testing/memory.h"
#include "executor/launch.h"
#include "executor/lower.h"

namespace mscclc::cuda {

class RanksPrograms {
 public:
  /// What the program of a rank refers to.
  struct Rank {
    std::vector<device::BaseAddress> bases;
    uint64_t* semaphores;
    device::Barrier* barriers;
    std::vector<BlockPrograms::Places::External> externals = {};
    std::vector<BlockPrograms::Places::Flags> flags = {};
    BlockPrograms::Places places(const std::vector<device::ChannelEnd>& ends) const {
      return {bases, ends, semaphores, barriers, externals, flags};
    }
  };

  /// Forgets what was packed; `calls` are to be, the first one of this number.
  void clear(uint32_t calls, uint64_t first_call);
  /// Packs the programs of call `in_call`, and sets what `launch` says of programs.
  /// `launch.blocks`: of all ranks. `carried`: they may travel in the parameters of the launch.
  [[nodiscard]] bool pack(uint32_t in_call, const DeviceProgram& device,
                          const std::vector<Rank>& ranks,
                          const std::vector<device::ChannelEnd>& ends, bool carried,
                          device::LaunchPlan& launch, Diagnostics& d);
  /// Of a rank, in the call that was packed last.
  const BlockPrograms& of_rank(uint32_t rank) const { return of_ranks_[rank]; }
  /// Of all blocks, in memory of the host.
  const uint8_t* packed(uint32_t in_call) const { return packed_[in_call].data(); }

 private:
  [[nodiscard]] bool pack_ranks(uint32_t in_call, const DeviceProgram& device,
                                const std::vector<Rank>& ranks,
                                const std::vector<device::ChannelEnd>& ends, bool keep,
                                device::LaunchPlan& launch, Diagnostics& d);

  std::vector<DeviceMemory> programs_;        ///< by call
  std::vector<std::vector<uint8_t>> packed_;  ///< by call
  std::vector<BlockPrograms> of_ranks_;
  DeviceMemory counts_;   ///< of calls, by block; all calls have the same
  bool counted_ = false;  ///< they have been allocated
  uint64_t first_call_ = 0;
};

}  // namespace mscclc::cuda
