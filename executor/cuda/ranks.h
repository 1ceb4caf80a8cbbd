// All ranks of a plan on one GPU, in one process: their memory, and calls that run on it. For
// comparing the CUDA machine with the host machine; a launch holds the blocks of all ranks.
#pragma once

#include <cstdint>
#include <memory>

#include "executor/lower.h"
#include "ir/diagnostic.h"
#include "ir/program.h"

namespace mscclc::cuda {

class CudaRanks {
 public:
  /// The program must outlive it.
  explicit CudaRanks(const Program& program);
  ~CudaRanks();
  CudaRanks(const CudaRanks&) = delete;
  CudaRanks& operator=(const CudaRanks&) = delete;

  /// True if this machine has a GPU that the kernel can run on.
  static bool available();

  /// Lowers the program. Once, before all else.
  bool build(Diagnostics& diagnostics);
  /// Allocates and uploads what a call needs; packet slots are empty, counts zero.
  bool prepare(const Call& call, bool in_place, Diagnostics& diagnostics);
  /// Runs one call and waits for its end. A wait without end is reported and gives false.
  bool run(Diagnostics& diagnostics);

  /// Copies the whole of a buffer of a rank from or to host memory.
  bool write(uint32_t rank, uint32_t buffer, const uint8_t* from, Diagnostics& diagnostics);
  bool read(uint32_t rank, uint32_t buffer, uint8_t* to, Diagnostics& diagnostics) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mscclc::cuda
