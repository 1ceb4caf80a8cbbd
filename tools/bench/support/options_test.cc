#include "tools/bench/support/options.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace mscclc::bench {
namespace {

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

Options parsed(const std::string& line) {
  auto read = parse_options(words(line));
  INFO((read ? "" : read.error().text()));
  REQUIRE(read);
  CHECK(read->help.empty());
  return std::move(read->options);
}

std::string refused(const std::string& line) {
  const auto read = parse_options(words(line));
  REQUIRE_FALSE(read);
  return read.error().text();
}

TEST_CASE("sizes grow by a factor, or by a step") {
  CHECK(parsed("-b 1K -e 8K p.mscl").sizes == std::vector<uint64_t>{1024, 2048, 4096, 8192});
  CHECK(parsed("-b 1K -e 16K -f 4 p.mscl").sizes == std::vector<uint64_t>{1024, 4096, 16384});
  CHECK(parsed("-b 1K -e 3K -i 1K p.mscl").sizes == std::vector<uint64_t>{1024, 2048, 3072});
}

TEST_CASE("nccl-tests' options have their meaning") {
  const Options o = parsed("-g 4 -n 20 -w 5 -m 3 -c 0 -G 8 -d half -o max -r 2 -z 1 -J f p.mscl");
  CHECK(o.gpus == 4);
  CHECK(o.iterations == 20);
  CHECK(o.warmup == 5);
  CHECK(o.aggregate == 3);
  CHECK(o.check == 0);
  CHECK((o.graph && !o.eager));
  CHECK(o.replays == 8);
  CHECK(o.dtypes == std::vector{Dtype::f16});
  CHECK(o.ops == std::vector{ReduceOp::max});
  CHECK(o.root == 2);
  CHECK(o.blocking);
  CHECK(o.json == "f");
}

TEST_CASE("a machine is cut into whole nodes") {
  CHECK(parsed("p.mscl").ranks_per_node == 0);
  CHECK(parsed("-g 4 --ranks-per-node 2 p.mscl").ranks_per_node == 2);
  CHECK(refused("-g 4 --ranks-per-node 3 p.mscl") ==
        "--ranks-per-node 3: 4 ranks do not fill whole nodes");
}

TEST_CASE("ranks of one node share whole GPUs") {
  CHECK(parsed("p.mscl").ranks_per_gpu == 1);
  CHECK(parsed("-g 4 --ranks-per-gpu 2 p.mscl").ranks_per_gpu == 2);
  CHECK(refused("-g 4 --ranks-per-gpu 3 p.mscl") ==
        "--ranks-per-gpu 3: 4 ranks do not fill whole GPUs");
  CHECK(refused("-g 4 --ranks-per-gpu 2 --ranks-per-node 2 p.mscl") ==
        "--ranks-per-gpu is for ranks of one node; nodes share GPUs where there are too few");
  CHECK(refused("--ranks-per-gpu 0 p.mscl").find("--ranks-per-gpu") != std::string::npos);
}

TEST_CASE("all types, all reductions, and types by nccl-tests' names") {
  CHECK(parsed("-d all p.mscl").dtypes.size() == dtype_table().size());
  CHECK(parsed("-o all p.mscl").ops.size() == 5);
  CHECK(parsed("-d float,bfloat16,f8e4m3 p.mscl").dtypes ==
        std::vector{Dtype::f32, Dtype::bf16, Dtype::e4m3});
  for (const DtypeInfo& d : dtype_table()) {
    CHECK(parsed("-d " + std::string(nccl_name(d.dtype)) + " p.mscl").dtypes ==
          std::vector{d.dtype});
  }
}

TEST_CASE("eager unless a graph is asked for, or both") {
  CHECK_FALSE(parsed("p.mscl").graph);
  CHECK_FALSE(parsed("-G 0 p.mscl").graph);
  CHECK_FALSE(parsed("--graph p.mscl").eager);
  CHECK(parsed("--graph p.mscl").replays == 0);
  const Options both = parsed("--both p.mscl");
  CHECK((both.eager && both.graph));
}

TEST_CASE("both placements unless one is asked for") {
  const Options both = parsed("p.mscl"), in = parsed("--placement in-place p.mscl");
  CHECK((both.in_place && both.out_of_place));
  CHECK((in.in_place && !in.out_of_place));
}

TEST_CASE("contenders and collectives are lists, and plans may be left out then") {
  const Options o =
      parsed("--contender nccl,copy --contender torch --collective allreduce,allgather");
  CHECK(o.contenders == std::vector<std::string>{"nccl", "copy", "torch"});
  CHECK(o.collectives == std::vector{CollectiveKind::allreduce, CollectiveKind::allgather});
  CHECK(o.plans.empty());
  CHECK(parsed("--peer nccl --collective all p.mscl").contenders ==
        std::vector<std::string>{"nccl"});
  CHECK(parsed("--collective all p.mscl").collectives.empty());
}

TEST_CASE("several files with recorded baselines") {
  CHECK(parsed("--recorded a --recorded b p.mscl").recorded == std::vector<std::string>{"a", "b"});
}

TEST_CASE("results replace no file that is read") {
  const std::string file = std::filesystem::temp_directory_path() / "bench_options.jsonl";
  std::ofstream(file) << "{}\n";
  const std::string why = "--json would replace '" + file + "', which is read";
  CHECK(refused("--json " + file + " --recorded a --recorded " + file + " p.mscl") == why);
  CHECK(refused("--json " + file + " " + file) == why);
  CHECK(parsed("--json " + file + " --recorded a p.mscl").json == file);
  CHECK(parsed("--json /dev/null --recorded /dev/null p.mscl").json == "/dev/null");
  std::filesystem::remove(file);
}

TEST_CASE("calls are timed between other kernels if that is asked for") {
  CHECK(parsed("p.mscl").between == 0);
  CHECK(parsed("--between 2 p.mscl").between == 2);
  CHECK_FALSE(parsed("--between 2 p.mscl").between_early);
  CHECK(parsed("--between 0.5 --between-early p.mscl").between_early);
  CHECK(refused("--between-early p.mscl") == "--between-early needs --between");
  CHECK(refused("--between 0 p.mscl") ==
        "--between: a kernel takes 0.5 to 1000 microseconds, not 0");
  CHECK(refused("--between -2 p.mscl") ==
        "--between: a kernel takes 0.5 to 1000 microseconds, not -2");
}

TEST_CASE("what is wrong with a command line is reported") {
  CHECK(refused("-d float33 p.mscl") == "unknown data type 'float33'");
  CHECK(refused("-o plus p.mscl") == "unknown reduction 'plus'");
  CHECK(refused("--collective sum p.mscl") == "unknown collective 'sum'");
  CHECK(refused("--contender gloo p.mscl") ==
        "unknown contender 'gloo'; there are nccl, nccl-symmetric, torch, copy, handwritten");
  CHECK(refused("-g 4 -r 4 p.mscl") == "the root 4 is not one of the 4 ranks");
  CHECK(refused("--offset 2 p.mscl") == "--offset 2 is not a multiple of an element of f32");
  CHECK(refused("-b 4K -e 1K p.mscl") == "the range '4K:1K:2' ends before it begins");
  CHECK(refused("--contender nccl --no-library") ==
        "nothing to measure: --no-library needs contenders and collectives");
  CHECK(refused("--no-library p.mscl") == "--no-library is for runs without plans");
}

TEST_CASE("help is no mistake and has examples") {
  const auto read = parse_options({"--help"});
  REQUIRE(read);
  CHECK(read->help.find("mscclc-bench --from-json r.jsonl") != std::string::npos);
}

}  // namespace
}  // namespace mscclc::bench
