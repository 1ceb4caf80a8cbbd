// The ops that a group op was expanded to: neighbours in the list, one per part. Passes keep them
// side by side, so that later ones can distinguish them from parts that have nothing to do with
// each other.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc {

/// Ops [begin, end) of a list.
struct OpRun {
  uint32_t begin, end;
};

/// The parts of the group op that op `i` is one of; only itself if it is none.
inline OpRun group_run(const std::vector<Op>& ops, uint32_t i) {
  const Op& self = ops[i];
  const OpRun alone{i, i + 1};
  if (self.parts == 0 || self.part > i || size_t{i} - self.part + self.parts > ops.size()) {
    return alone;
  }
  const OpRun run{i - self.part, i - self.part + self.parts};
  for (uint32_t k = run.begin; k < run.end; ++k) {
    const bool member = ops[k].kind == self.kind && ops[k].parts == self.parts &&
                        ops[k].part == k - run.begin && ops[k].loop == self.loop;
    if (!member) return alone;
  }
  return run;
}

}  // namespace mscclc
