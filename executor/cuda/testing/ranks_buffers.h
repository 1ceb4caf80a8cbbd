// Buffers of all ranks: the caller's, in each call that a run queues, and scratch.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/cuda/testing/memory.h"
#include "executor/cuda/testing/ranks.h"
#include "executor/cuda/testing/ranks_multicast.h"
#include "executor/lower.h"
#include "ir/contract/contract.h"
#include "ir/program/program.h"

namespace mscclc::cuda {

class RanksBuffers {
 public:
  /// The program must outlive it.
  explicit RanksBuffers(const Program& program) : program_(program) {}

  /// For calls like `call`, which `device` has been fitted to. Slots of packets are empty, and
  /// plain scratch has what the simulator's has.
  [[nodiscard]] bool allocate(const DeviceProgram& device, const Call& call,
                              const CudaRanks::Options& options, Diagnostics& d);
  /// REQUIRES: allocate(); in place the caller's are one.
  const RankBuffer& at(uint32_t rank, uint32_t in_call, uint32_t buffer) const {
    return ranks_[rank].addresses[in_call][buffer];
  }

 private:
  struct OfRank {
    std::vector<DeviceMemory> buffers;               ///< the caller's are those of the first call
    std::vector<DeviceMemory> later;                 ///< the caller's of later calls
    std::vector<std::vector<RankBuffer>> addresses;  ///< by call, of buffers
  };
  /// Of one rank.
  struct Wanted {
    uint32_t rank;
    const std::vector<BufferLayout>& layout;
    const Call& call;
    const CudaRanks::Options& options;
    CallerBuffers callers;

    uint64_t shift_of(uint32_t buffer) const;
  };

  [[nodiscard]] bool allocate(const Wanted& wanted, Diagnostics& d);
  [[nodiscard]] bool add_call(const Wanted& wanted, Diagnostics& d);
  [[nodiscard]] bool fill_scratch(const Wanted& wanted, Diagnostics& d);

  const Program& program_;
  std::vector<OfRank> ranks_;
};

}  // namespace mscclc::cuda
