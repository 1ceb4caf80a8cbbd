// The parts of gpu_check, which tries the runtime on a machine's GPUs. A part runs its ranks as
// processes, one a GPU (or as threads of one process), and says what it has counted.
#pragma once

#include <cstdint>
#include <string>

#include "tests/runtime/ranks.h"

namespace mscclc::testing {

struct StageOptions {
  uint32_t ranks = 2;
  uint32_t gpus = 2;     ///< rank r runs on GPU r % gpus
  bool threads = false;  ///< ranks are threads of one process
  std::string filter;    ///< plans whose name contains it
};

/// Runs `body` on all ranks, each with its GPU; "" if all was well at every rank.
std::string run_ranks(const StageOptions& options, const RankBody& body,
                      std::chrono::milliseconds timeout = kPatience);

/// Every plan of the library and of the peer for this number of ranks, against the collective's
/// definition: data types, reductions, sizes, in place or not, zero copy or staged, odd offsets.
bool check_plans(const StageOptions& options);

}  // namespace mscclc::testing
