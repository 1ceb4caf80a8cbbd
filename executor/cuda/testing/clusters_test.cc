// The model of a GPU runs clusters: their blocks meet, and send floats to one another.
#include <catch2/catch.hpp>
#include <functional>
#include <vector>

#include "executor/cuda/device/cluster.cuh"
#include "executor/cuda/host/grid.h"

namespace mscclc::cuda {
namespace {

using host::Gpu;
using host::shared;

/// Runs one kernel of two clusters of two blocks of 64 threads.
bool run_clusters(uint64_t seed, const std::function<void()>& kernel) {
  Gpu::get().set_seed(seed);
  host::Stream stream;
  Gpu::get().launch(stream, {4, 64, 0, false, 2}, kernel);
  const bool ended = Gpu::get().run();
  Gpu::get().set_seed(0);
  return ended;
}

TEST_CASE("the blocks of a cluster meet, and send floats to one another") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::vector<float> sums(4 * 64);
    REQUIRE(run_clusters(seed, [&] {
      auto& floats = shared<SharedFloats>();
      if (threadIdx.x == 0) prepare(floats);
      meet_in_block();
      float sum = 0;
      for (uint32_t turn = 0; turn < 3; ++turn) {
        const uint32_t warp = thread_of_block() / 32, lane = threadIdx.x % 32, at = turn & 1;
        const float mine = static_cast<float>(block_of_rank() * 100 + warp + turn);
        if (lane < cluster_blocks()) send(floats, at, warp, mine, lane);
        if (threadIdx.x == 0) expect(floats, at, 4 * sizeof mine);
        while (!have_come(floats, at, turn >> 1)) after_vain_poll();
        for (uint32_t w = 0; w < 4; ++w) sum += floats.of_warp[at][w];
        __syncwarp(0xffffffff);  // all have read: who gets further sends the turn after the next
      }
      sums[blockIdx.x * 64 + threadIdx.x] = sum;
    }));
    for (uint32_t t = 0; t < sums.size(); ++t) CHECK(sums[t] == (t < 128 ? 30.0f : 1230.0f));
  }
}

TEST_CASE("a thread that does not meet its cluster leaves the others waiting, unless it ends") {
  const auto kernel = [](bool ends) {
    return run_clusters(0, [ends] {
      if (thread_of_block() == 0 && ends) exit_thread();
      if (thread_of_block() == 0) __syncthreads();
      meet_cluster();
    });
  };
  CHECK(kernel(true));
  CHECK_FALSE(kernel(false));
}

}  // namespace
}  // namespace mscclc::cuda
