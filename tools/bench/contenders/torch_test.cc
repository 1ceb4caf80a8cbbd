#include "tools/bench/contenders/torch.h"

#include <catch2/catch.hpp>

namespace mscclc::bench {
namespace {

TEST_CASE("the script gets our sizes, types and batches") {
  Options options;
  options.gpus = 4;
  options.sizes = {1024, uint64_t{16} << 20};
  options.dtypes = {Dtype::f32, Dtype::f16, Dtype::bf16};
  options.graph = true;
  CHECK(torch_arguments(options) ==
        "--gpus 4 --repeats 9 --warmup 2 --type f32 --type bf16 --work eager:1024:200:8:100:10 "
        "eager:16777216:60:4:40:10 graph:1024:50:8:100:50 graph:16777216:10:4:40:10");
}

TEST_CASE("the script is given the kernels between calls, and times none that launch early") {
  Options options;
  options.sizes = {1024};
  options.dtypes = {Dtype::f32};
  options.between = 2.5;
  CHECK(torch_arguments(options) ==
        "--gpus 2 --repeats 9 --warmup 2 --between 2.5 --type f32 --work "
        "eager:1024:200:8:100:10");
  options.between_early = true;
  CHECK(torch_arguments(options).find("--between 2.5") != std::string::npos);
  CHECK(torch_arguments(options).find("early") == std::string::npos);
}

TEST_CASE("PyTorch is not asked for other collectives or reductions") {
  Options options;
  options.ops = {ReduceOp::sum};
  options.collectives = {CollectiveKind::allgather};
  CHECK(run_torch(options).left_out.empty());
  options.collectives.clear();
  options.ops = {ReduceOp::max};
  CHECK(run_torch(options).left_out.empty());
  options.ops = {ReduceOp::sum};
  options.offset = 4;
  CHECK(run_torch(options).left_out.empty());
}

TEST_CASE("PyTorch is left out where ranks share GPUs") {
  Options options;
  options.ops = {ReduceOp::sum};
  options.ranks_per_gpu = 2;
  const Record record = run_torch(options);
  REQUIRE(record.left_out.size() == 1);
  CHECK(record.left_out.front().why == "its ranks have a GPU each");
}

}  // namespace
}  // namespace mscclc::bench
