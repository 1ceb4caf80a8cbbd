// What a call takes at least on a machine, whatever the plan: the bytes that must pass the
// narrowest place, and one message's way.
#pragma once

#include <cstdint>

#include "ir/contract/contract.h"
#include "plans/format/machines/machine.h"

namespace mscclc::cost {

struct Bound {
  uint64_t link_bytes = 0;  ///< out of, or into, some GPU
  uint64_t node_bytes = 0;  ///< out of, or into, some node
  uint32_t rounds = 0;      ///< messages on the longest way
  double ns = 0;
};

/// `by_switch`: switches may add up, so that a sum comes in once. REQUIRES: `part_bytes` as of
/// Chunking.
Bound least(const Contract& contract, uint64_t part_bytes, const Machine& machine,
            bool by_switch = false);

}  // namespace mscclc::cost
