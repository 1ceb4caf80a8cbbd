#include "tests/gpu/stage.h"

#include "runtime/cuda/open.h"

namespace mscclc::testing {

std::string run_ranks(const StageOptions& options, const RankBody& body,
                      std::chrono::milliseconds timeout) {
  const OpenDevice open = [&](uint32_t rank, Diagnostics& diagnostics) {
    return cuda::open_gpu(static_cast<int>(rank % options.gpus), diagnostics);
  };
  return options.threads ? run_threads(options.ranks, body, timeout, open)
                         : run_processes(options.ranks, body, timeout, open);
}

}  // namespace mscclc::testing
