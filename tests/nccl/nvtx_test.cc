// What profilers learn by NVTX: a range for each function.
#include <dlfcn.h>

#include "tests/helpers/runtime/processes.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

void make_calls() {
  Ranks ranks(1);
  float value[2] = {1, 2};
  double other = 3;
  (void)ncclAllReduce(value, value, 2, kFloat, kSum, ranks.comms[0], nullptr);
  (void)ncclGroupStart();
  (void)ncclBroadcast(&other, &other, 1, kDouble, 0, ranks.comms[0], nullptr);
  (void)ncclGroupEnd();
  (void)ncclAllGather(nullptr, nullptr, 1, 99, ranks.comms[0], nullptr);  // no such type
  ncclComm_t child = nullptr;
  (void)ncclCommSplit(ranks.comms[0], 0, 0, &child, nullptr);
  (void)ncclCommAbort(child);
}

/// Makes calls of one rank with a profiler in the process: what it has recorded.
std::string ranges_of_calls() {
  const std::string path = ServedBy::absolute("tests/helpers/runtime/libnvtx_injection.so");
  ::setenv("NVTX_INJECTION64_PATH", path.c_str(), 1);
  const ServedBy served(nullptr, true);
  make_calls();
  void* const library = ::dlopen(path.c_str(), RTLD_NOW);
  REQUIRE(library != nullptr);
  CHECK(reinterpret_cast<int (*)()>(::dlsym(library, "ranges_open"))() == 0);
  return reinterpret_cast<const char* (*)()>(::dlsym(library, "ranges_seen"))();
}

// First: the library looks for a profiler once a process.
TEST_CASE("NCCL_NVTX_DISABLE: nothing is reported to profilers") {
  mscclc::testing::Processes processes;
  processes.start([] {
    ::setenv("NCCL_NVTX_DISABLE", "1", 1);
    return ranges_of_calls().empty() ? 0 : 1;
  });
  CHECK(processes.wait(0, std::chrono::minutes(5)) == 0);
}

TEST_CASE("a profiler gets each call") {
  const std::string seen = ranges_of_calls();
  CHECK(seen ==
        "NCCL: ncclCommInitRank\n"
        "NCCL: ncclAllReduce of 8 bytes\n"
        "NCCL: ncclGroupStart\n"
        "NCCL: ncclBroadcast of 8 bytes\n"
        "NCCL: ncclGroupEnd\n"
        "NCCL: ncclAllGather of 0 bytes\n"
        "NCCL: ncclCommSplit\n"
        "NCCL: ncclCommAbort\n"
        "NCCL: ncclGroupStart\n"
        "NCCL: ncclCommDestroy\n"
        "NCCL: ncclGroupEnd\n");
}

}  // namespace
}  // namespace mscclc::nccl::testing
