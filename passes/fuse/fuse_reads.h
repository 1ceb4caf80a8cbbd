// What reads scratch: how many operands of all ranks' ops read each chunk, packets included. A
// chunk that only the op at hand reads need not be written. Counted when it is first asked for, as
// most programs never ask, and kept up to date from then on. While several threads fuse ranks,
// there is nothing to count: a question gets no answer, and is asked again later.
#pragma once

#include <vector>

#include "ir/program/access.h"
#include "ir/program/program.h"

namespace mscclc::fusion {

class ScratchReads {
 public:
  explicit ScratchReads(const Program& program) : program_(program) {}
  /// A rank begins, whose reads may be counted or not. They may if nothing else changes ops.
  void begin(bool may_count) {
    may_count_ = may_count;
    asked_ = false;
  }
  /// How many operands read each of these chunks of `rank`; kNone if not all the same number, or
  /// if they may not be counted: asked() is true then.
  uint32_t count(uint32_t rank, const Operand& chunks);
  /// An operand of an op of `rank`, here or at a far end, is read more or less often than the
  /// program's ops say.
  void change(uint32_t rank, const Operand& chunks, int32_t by);
  /// The program's ops say now what changes have said.
  void settle() { changes_.clear(); }
  /// Has it been asked since begin()?
  bool asked() const { return asked_; }

 private:
  struct Change {
    uint32_t rank;
    Operand chunks;
    int32_t by;
  };

  void read();
  void apply(const Change& change);

  const Program& program_;
  bool may_count_ = true, known_ = false, asked_ = false;
  std::vector<uint32_t> first_;          ///< by rank and buffer: in counts_
  std::vector<uint32_t> first_of_rank_;  ///< in first_
  std::vector<uint32_t> counts_;
  std::vector<Change> changes_;  ///< until counts are known
};

}  // namespace mscclc::fusion
