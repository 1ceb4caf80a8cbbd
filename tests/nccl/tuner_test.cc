// NCCL's tuner files where plans serve calls.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/api/tuner_csv.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

/// Lines as NVIDIA's example of a tuner plug-in has them, of interfaces up to v7.
constexpr const char* kTunerLines =
    "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,more]\n"
    "allreduce,0,65536,tree,simple,2,1,-1,-1,1\n"       // buffers of these are not registered
    "allreduce,65537,1048576,ring,simple,4,4,32,1,0\n"  // nor are there 32 ranks
    "allreduce,1048577,4294967295,ring,ll128,-1,-1,-1,4,-1\n"  // whatever the group has
    "allgather,0,4294967295,ring,simple,4,2,-1\n"              // of two nodes
    "reduce,0,4294967295,nvls_tree,simple,-1,-1,-1\n";

TEST_CASE("lines of NVIDIA's tuner file leave calls to NCCL, others are by plans [case-106]") {
  // A process reads the file when it makes its first communicator with plans, so this case is alone
  // in a process with the next one, which has none.
  const std::string file = std::string(std::getenv("TEST_TMPDIR")) + "/nccl_tuner.conf";
  std::ofstream(file) << kTunerLines;
  const Setting named("MSCCLC_TUNER_FILE", file);
  const ServedBy served(kFakeNccl, true);
  Ranks ranks(2);
  std::vector<int> in[2] = {std::vector<int>(1 << 20, 1), std::vector<int>(1 << 20, 2)},
                   out[2] = {std::vector<int>(1 << 20), std::vector<int>(1 << 20)};
  const auto left = [&](const char* function, const auto& call) {
    for (auto& one : out) std::ranges::fill(one, -1);
    const long before = calls_of_fake(function);
    CHECK(ranks.together(call) == ncclSuccess);
    CHECK(out[0][0] == (std::string(function) == "AllGather" ? 1 : 3));
    return calls_of_fake(function) - before;
  };
  const auto all_reduce = [&](size_t count) {
    return left("AllReduce", [&, count](int r, ncclComm_t comm) {
      return ncclAllReduce(in[r].data(), out[r].data(), count, kInt32, kSum, comm, nullptr);
    });
  };
  CHECK(all_reduce(1) == 0);
  CHECK(all_reduce(50'000) == 0);
  CHECK(all_reduce(1 << 20) == 2);
  CHECK(left("Reduce", [&](int r, ncclComm_t comm) {
          return ncclReduce(in[r].data(), out[r].data(), 9, kInt32, kSum, 0, comm, nullptr);
        }) == 2);
  CHECK(left("AllGather", [&](int r, ncclComm_t comm) {
          return ncclAllGather(in[r].data(), out[r].data(), 9, kInt32, comm, nullptr);
        }) == 0);
}

TEST_CASE("lines of NVIDIA's tuner file are written as they were read [case-106]") {
  Diagnostics diagnostics;
  const auto lines = read_tuner_csv(kTunerLines, "nccl_tuner.conf", diagnostics);
  REQUIRE(lines);
  REQUIRE(lines->size() == 5);
  for (const TunerLine& line : *lines) CHECK(line.is_nccl());
  const auto text = write_tuner_csv(*lines, diagnostics);
  REQUIRE(text);
  CHECK(read_tuner_csv(*text, "written", diagnostics) == lines);
}

}  // namespace
}  // namespace mscclc::nccl::testing
