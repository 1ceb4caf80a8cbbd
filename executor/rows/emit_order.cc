#include "executor/rows/emit_order.h"

#include <algorithm>

namespace mscclc::rows {

PhaseOrder order_of(const Function& function) {
  PhaseOrder order;
  order.nodes.resize(function.nodes.size());
  for (const Stored& output : function.outputs) order.nodes[output.node].live = true;
  for (uint32_t n = static_cast<uint32_t>(function.nodes.size()); n-- > 0;) {
    if (!order.nodes[n].live) continue;
    const Node& node = function.nodes[n];
    for (uint32_t a = 0; a < argument_count(node.op); ++a) order.nodes[node.args[a]].live = true;
  }
  for (uint32_t n = 0; n < function.nodes.size(); ++n) {
    const Node& node = function.nodes[n];
    NodeOrder& own = order.nodes[n];
    if (!own.live) continue;
    for (uint32_t a = 0; a < argument_count(node.op); ++a) {
      own.phase = std::max(own.phase, order.nodes[node.args[a]].phase);
    }
    // A reduction reads its argument in the argument's phase.
    for (uint32_t a = 0; a < argument_count(node.op); ++a) {
      NodeOrder& arg = order.nodes[node.args[a]];
      arg.last = std::max(arg.last, own.phase);
    }
    if (is_reduction(node.op)) ++own.phase;
    own.last = own.phase;
    order.phases = std::max(order.phases, own.phase + 1);
  }
  return order;
}

}  // namespace mscclc::rows
