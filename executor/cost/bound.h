// What a call takes at least on a machine, whatever the plan: the bytes that must pass the
// narrowest place, or messages that all ranks wait for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "executor/lower.h"
#include "ir/program/program.h"
#include "plans/format/machines/machine.h"

namespace mscclc::cost {

struct Bound {
  struct Bytes {
    uint64_t out = 0, in = 0;
    uint64_t most() const { return std::max(out, in); }
  };
  Bytes link;         ///< of the GPU that gives, or gets, most
  Bytes node;         ///< of such a node
  uint32_t hops = 0;  ///< messages on the longest way
  double ns = 0;      ///< of a call, when calls follow one another
};

/// Of plans that use a switch if the program does.
Bound least(const Program& program, const Call& call, const Machine& machine);

}  // namespace mscclc::cost
