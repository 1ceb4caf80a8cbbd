// What the ranks of a communicator learn of each other when it is created: whether they have the
// same settings, what joins their devices, which of them are a node, and the memory in which ranks
// of a machine compare their calls.
#pragma once

#include "runtime/core/group/group.h"

namespace mscclc {

/// Collective. `able`: this rank can take part; otherwise the others learn the last error of
/// `diagnostics`. False: reported, on all ranks.
[[nodiscard]] bool meet(RankGroup& group, bool able, Diagnostics& diagnostics);

}  // namespace mscclc
