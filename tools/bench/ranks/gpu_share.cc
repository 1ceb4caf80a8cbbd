#include "tools/bench/ranks/gpu_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/network/threads/copy_workers.h"

namespace mscclc::bench {

int gpu_of(uint32_t rank, const Options& options, int gpus) {
  if (options.ranks_per_node == 0) return static_cast<int>(rank / options.ranks_per_gpu);
  return gpus > 0 ? static_cast<int>(rank) % gpus : static_cast<int>(rank);
}

uint32_t gpus_in_use(const Options& options, int gpus) {
  if (options.ranks_per_node == 0) return options.gpus / options.ranks_per_gpu;
  return gpus > 0 ? std::min(options.gpus, static_cast<uint32_t>(gpus)) : options.gpus;
}

std::optional<uint32_t> socket_threads(const Options& options, int gpus, uint32_t processors) {
  if (options.ranks_per_node == 0 || gpus_in_use(options, gpus) == options.gpus) return {};
  return net::workers_of_gpu(processors, options.gpus);
}

uint32_t share_in_percent(uint32_t ranks_per_gpu) { return 100 / ranks_per_gpu; }

std::optional<Error> share_fault(uint32_t ranks_per_gpu, std::optional<bool> mps,
                                 const std::string& percentage) {
  if (mps == false) {
    return Error{
        "ranks that share a GPU need NVIDIA's MPS ('nvidia-cuda-mps-control -d' starts it): "
        "without it their processes take turns on the GPU"};
  }
  char* end = nullptr;
  const double percent = std::strtod(percentage.c_str(), &end);
  const bool number = end != percentage.c_str() && *end == 0;
  if (number && percent > 0 && percent * ranks_per_gpu <= 100) return std::nullopt;
  return Error{
      fmt::format("{} is '{}': each of {} ranks that share a GPU gets {} at most, or their "
                  "thread blocks, which wait for one another, might not find room at once",
                  kMpsPercentage, percentage, ranks_per_gpu, share_in_percent(ranks_per_gpu))};
}

std::string machine_text(uint32_t ranks, uint32_t gpus, const std::string& model,
                         uint32_t multiprocessors) {
  if (gpus >= ranks) return fmt::format("{} x {}", ranks, model);
  return fmt::format("{} ranks on {} x {}, {} multiprocessors each", ranks, gpus, model,
                     multiprocessors);
}

}  // namespace mscclc::bench
