// Externals of all ranks: those of a rank lie in one piece of memory, each at a whole line, for all
// calls that a run queues.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/block_programs.h"
#include "executor/cuda/testing/memory.h"
#include "executor/rows/externals.h"
#include "ir/program/program.h"

namespace mscclc::cuda {

class RanksExternals {
 public:
  /// For calls like `call`.
  [[nodiscard]] bool allocate(const Program& program, const Call& call, Diagnostics& d);
  /// Where a rank's lie, for its programs.
  std::vector<BlockPrograms::Places::External> places(uint32_t rank) const;
  /// Copies an external from or to host memory. False: reported.
  [[nodiscard]] bool write(uint32_t rank, uint32_t external, const uint8_t* from, Diagnostics& d);
  [[nodiscard]] bool read(uint32_t rank, uint32_t external, uint8_t* to, Diagnostics& d) const;

 private:
  struct OfRank {
    DeviceMemory memory;
    std::vector<rows::ExternalLayout> layouts;
    std::vector<uint64_t> offsets;
  };
  std::vector<OfRank> ranks_;
};

}  // namespace mscclc::cuda
