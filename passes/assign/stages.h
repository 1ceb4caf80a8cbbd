// Stages of a pipeline's body: a new one begins with each wait that follows something else. What
// comes in, is worked on and is sent on is one stage; its rounds can go on while the next stage
// still waits for a word from outside.
//
//   put up.s[0] <- input[0] ; signal up                        stage 0
//   wait up ; reduce output[0] <- input[0], s[0]               stage 1
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::assign {

class Stages {
 public:
  explicit Stages(const Program& program);
  /// Looks at a rank.
  void find(uint32_t rank);
  /// Of an op; 0 outside pipelines.
  uint32_t stage(uint32_t op) const { return stage_[op]; }
  /// True if a stage may begin a round of the pipeline before another has ended the one before: no
  /// two rounds touch the same bytes, or only this rank does, whose order the pass `pipeline`
  /// keeps.
  bool may_overlap(uint32_t loop) const { return overlaps_[loop]; }

 private:
  void find_shared_units();

  const Program& program_;
  std::vector<uint32_t> stage_;
  std::vector<bool> overlaps_;  ///< by pipeline
};

}  // namespace mscclc::assign
