// Flags of all ranks, in memory that the host sees, and their other side: it raises those of the
// input before each call, or as a test says, and looks whether those of the output were raised.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/block_programs.h"
#include "executor/cuda/testing/memory.h"
#include "ir/program/program.h"

namespace mscclc::cuda {

class RanksFlags {
 public:
  /// Words of 0. The program must outlive it.
  [[nodiscard]] bool allocate(const Program& program, Diagnostics& d);
  /// Where a rank's lie, for its programs.
  std::vector<BlockPrograms::Places::Flags> places(uint32_t rank) const;
  /// Raises all flags of a rank's input as often as a call needs.
  void raise_all(uint32_t rank);
  /// Raises one once, by its number over all arrays. Any thread, also while calls run.
  void raise(uint32_t rank, uint32_t number);
  /// Counts `calls` that have run. False: reported; one of the output was not raised in all calls.
  [[nodiscard]] bool compare(uint32_t calls, Diagnostics& d);

 private:
  static constexpr uint64_t kBytes = 8;  ///< that each word has room for
  const Program* program_ = nullptr;
  std::vector<VisibleMemory> ranks_;  ///< array by array
  uint64_t calls_ = 0;
};

}  // namespace mscclc::cuda
