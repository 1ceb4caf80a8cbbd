// In which order a row function's values are computed: phases, between which lie reductions.
#pragma once

#include <vector>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// What the emitter knows of a node.
struct NodeOrder {
  bool live = false;  ///< a result depends on it
  uint32_t phase =
      0;  ///< reductions that must be over before it can be computed, one after the other
  uint32_t last = 0;  ///< the last phase in which something is made of it
};

/// By node; and how many phases there are.
struct PhaseOrder {
  std::vector<NodeOrder> nodes;
  uint32_t phases = 1;
};

PhaseOrder order_of(const Function& function);

/// Values that are written where they are used instead of being computed once.
inline bool is_literal(Op op) { return op == Op::constant || op == Op::columns; }

}  // namespace mscclc::rows
