// Which processes give to the ends of channels and to semaphores, and which take. With one of each
// the k-th that is taken is the k-th given, whatever the schedule. Semaphores with several
// releasers are decided by counting; any other sharing is outside what the prover decides.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "passes/prove/model/extent.h"
#include "passes/prove/model/system.h"
#include "passes/prove/processes/finding_list.h"

namespace mscclc::proof {

/// A semaphore that several blocks release: which, and how often in a call.
struct SharedSemaphore {
  uint32_t initial = 0, total = 0;
  bool in_loop = false;  ///< released in a pipeline
  std::vector<uint32_t> releasers, releases;
};

/// By number of the semaphore.
using SharedSemaphores = std::unordered_map<uint32_t, SharedSemaphore>;

/// Those of a system; reports what cannot be decided.
SharedSemaphores find_shared(const System& system, const Cuts& cuts, FindingList& findings);

}  // namespace mscclc::proof
