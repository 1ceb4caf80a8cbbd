// Does what a program says itself order the rounds of a pipeline that use the same unit of scratch?
// The pipeline is written out for so many rounds that the last one uses the unit of the first, and
// run: the clocks of its blocks show what semaphores and barriers order (block_run.h).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "passes/order/block_run.h"

namespace mscclc::expand {

/// An op that fills a unit, and one of another block that uses it after. Round i + units may fill
/// it again when round i has used it.
struct UnitUse {
  uint32_t fill, use;    ///< ops of one pipeline
  bool ordered = false;  ///< the block that fills waits for that, however long a way round
};

class UnitOrder {
 public:
  explicit UnitOrder(Program& program) : program_(program) {}
  /// Finds which `uses` (of one rank, pipeline and buffer) are ordered. False if a block waits
  /// forever. REQUIRES: every op has a block.
  bool find(uint32_t rank, uint32_t units, std::vector<UnitUse>& uses);

 private:
  void write_out(const std::vector<Op>& ops, uint32_t loop, uint32_t rounds);

  Program& program_;
  order::BlockRun run_;
  std::vector<Op> written_out_;
  std::vector<uint32_t> first_round_;  ///< by op of the pipeline: where it stands in written_out_
  uint32_t round_ops_ = 0;
};

}  // namespace mscclc::expand
