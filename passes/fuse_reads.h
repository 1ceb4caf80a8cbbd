// Who reads scratch: how many operands of all ranks' ops read each chunk, packets included. A chunk
// that only the op at hand reads need not be written. Counted when it is first asked for, as most
// programs never ask, and kept up to date from then on.
#pragma once

#include <vector>

#include "ir/access.h"
#include "ir/program.h"

namespace mscclc::fusion {

class ScratchReads {
 public:
  explicit ScratchReads(const Program& program) : program_(program) {}
  /// How many operands read each of these chunks of `rank`; kNone if not all the same number.
  uint32_t count(uint32_t rank, const Operand& chunks);
  /// An operand of an op of `rank`, here or at a far end, is read more or less often than the
  /// program's ops say.
  void change(uint32_t rank, const Operand& chunks, int32_t by);
  /// The program's ops say now what changes have said.
  void settle() { changes_.clear(); }

 private:
  struct Change {
    uint32_t rank;
    Operand chunks;
    int32_t by;
  };

  void read();
  void apply(const Change& change);

  const Program& program_;
  bool known_ = false;
  std::vector<uint32_t> first_;          ///< by rank and buffer: in counts_
  std::vector<uint32_t> first_of_rank_;  ///< in first_
  std::vector<uint32_t> counts_;
  std::vector<Change> changes_;  ///< until counts are known
};

}  // namespace mscclc::fusion
