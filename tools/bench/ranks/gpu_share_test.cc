#include "tools/bench/ranks/gpu_share.h"

#include <catch2/catch.hpp>

namespace mscclc::bench {
namespace {

Options sharing(uint32_t ranks_per_gpu, uint32_t ranks_per_node = 0) {
  Options options;
  options.gpus = 4;
  options.ranks_per_gpu = ranks_per_gpu;
  options.ranks_per_node = ranks_per_node;
  return options;
}

TEST_CASE("a rank has a GPU of its own, or shares that of its neighbour") {
  CHECK(gpu_of(3, sharing(1), 8) == 3);
  CHECK(gpu_of(1, sharing(2), 8) == 0);
  CHECK(gpu_of(2, sharing(2), 8) == 1);
  CHECK(gpu_of(3, sharing(4), 1) == 0);
}

TEST_CASE("simulated nodes share GPUs where there are too few") {
  CHECK(gpu_of(3, sharing(1, 2), 8) == 3);
  CHECK(gpu_of(3, sharing(1, 2), 2) == 1);
  CHECK(gpu_of(3, sharing(1, 2), 0) == 3);
}

TEST_CASE("GPUs that ranks share count once") {
  CHECK(gpus_in_use(sharing(1), 8) == 4);
  CHECK(gpus_in_use(sharing(2), 8) == 2);
  CHECK(gpus_in_use(sharing(1, 2), 8) == 4);
  CHECK(gpus_in_use(sharing(1, 2), 2) == 2);
}

TEST_CASE("simulated nodes that share GPUs share the processors for their threads") {
  CHECK(socket_threads(sharing(1, 1), 1, 64) == 4);
  CHECK(socket_threads(sharing(1, 1), 1, 16) == 0);
  CHECK_FALSE(socket_threads(sharing(1, 1), 4, 64));
  CHECK_FALSE(socket_threads(sharing(2), 2, 64));  // one node
}

TEST_CASE("the shares of all ranks fit into a GPU") {
  for (uint32_t ranks = 1; ranks <= 100; ++ranks) {
    CHECK(share_in_percent(ranks) * ranks <= 100);
    CHECK(!share_fault(ranks, true, std::to_string(share_in_percent(ranks))));
  }
  CHECK(share_in_percent(2) == 50);
}

TEST_CASE("a GPU cannot be shared without MPS, or by ranks that may use too much of it") {
  CHECK(share_fault(2, false, "50") ==
        "ranks that share a GPU need NVIDIA's MPS ('nvidia-cuda-mps-control -d' starts it): "
        "without it their processes take turns on the GPU");
  CHECK(share_fault(2, true, "60") ==
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is '60': each of 2 ranks that share a GPU gets 50 at "
        "most, or their thread blocks, which wait for one another, might not find room at once");
  for (const char* wrong : {"", "0", "-5", "half", "40 percent"}) {
    CHECK(share_fault(2, true, wrong));
  }
  CHECK(!share_fault(2, true, "12.5"));
  CHECK(!share_fault(2, std::nullopt, "50"));  // an old driver does not say
}

TEST_CASE("what results were measured on says whether ranks shared it") {
  CHECK(machine_text(2, 2, "NVIDIA H200", 132) == "2 x NVIDIA H200");
  CHECK(machine_text(4, 2, "NVIDIA H200", 66) ==
        "4 ranks on 2 x NVIDIA H200, 66 multiprocessors each");
}

}  // namespace
}  // namespace mscclc::bench
