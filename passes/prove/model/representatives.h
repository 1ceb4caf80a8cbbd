// Blocks that have nothing to do with each other: a plan of 128 thread blocks is most often one
// algorithm 128 times, each on chunks of its own. Then what holds of one of these *components*
// holds of all that are its images, and one of each kind is run for all (lemma S2 in
// docs/design/lemmas.md).
//
// A component is what ops tie together: blocks, chunks, channel ends, semaphores. Two are images if
// their descriptions are equal: all ops in order, with chunks, ends, semaphores and classes of
// equally long chunks numbered as they come up, and what is promised of the outputs among them.
#pragma once

#include <optional>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::proof {

struct Representatives {
  /// The plan, without the ops of blocks that others stand for, and without names and locations.
  Program program;
  std::vector<std::vector<bool>> outputs;  ///< by rank: output chunks that its ops touch

  /// Nothing if most ops would remain, or if the plan has what is not looked at: pipelines, row
  /// functions, flags, counts (alltoallv), ports, switches, outputs that no op touches. Of the plan
  /// with the caller's buffers in one place if `in_place`. REQUIRES: program.split.
  static std::optional<Representatives> find(const Program& program, bool in_place);
};

}  // namespace mscclc::proof
