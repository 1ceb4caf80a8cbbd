// NCCL's profiler interface: what a plug-in gets of calls that plans serve.
#include <dlfcn.h>

#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

/// NCCL_PROFILER_PLUGIN, while it lives, and what the plug-in has recorded.
class Plugged {
 public:
  explicit Plugged(const std::string& name) {
    const std::string path = ServedBy::absolute(("tests/nccl/" + name).c_str());
    ::setenv("NCCL_PROFILER_PLUGIN", path.c_str(), 1);
    library_ = ::dlopen(path.c_str(), RTLD_NOW);
    INFO(::dlerror());
    REQUIRE(library_ != nullptr);
  }
  ~Plugged() { ::unsetenv("NCCL_PROFILER_PLUGIN"); }
  std::string lines() const {
    return reinterpret_cast<const char* (*)()>(::dlsym(library_, "recordedLines"))();
  }

 private:
  void* library_;
};

/// The one rank's lines: other ranks' come between.
std::string of_rank(int rank, const std::string& text) {
  std::string found;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (line.starts_with(std::to_string(rank) + ": ")) found += line + '\n';
    at = end + 1;
  }
  return found;
}

TEST_CASE("a plug-in of version 6 sees calls of plans, and the plans' names") {
  const ServedBy served(nullptr, true);
  const Plugged plugged("libprofiler_v6.so");
  {
    Ranks ranks(2);
    const std::string begun = plugged.lines();
    CHECK_THAT(begun, Catch::Contains("init '' nodes 1 ranks 2 rank 0\n"));
    CHECK_THAT(begun, Catch::Contains("init '' nodes 1 ranks 2 rank 1\n"));
    float value[2] = {1, 2};
    for (int round = 0; round < 2; ++round) {
      REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
        return ncclAllReduce(&value[r], &value[r], 1, kFloat, kSum, comm, nullptr);
      }) == ncclSuccess);
      const std::string lines = plugged.lines();
      const std::string plan =
          "allreduce_1shot_ordered:R=2,F=LL16,B=4,T=256";  // of plans/library.json
      CHECK(of_rank(0, lines) ==
            "0: start 1 in 0: GroupApi captured false depth 1\n"
            "0: start 2 in 0: Group\n"
            "0: start 3 in 1: CollApi AllReduce count 1 ncclFloat32 root 0 captured false\n"
            "0: start 4 in 3: Coll AllReduce #" +
                std::to_string(round) + " ncclFloat32 plan of " + plan +
                " in 2\n"
                "0: start 5 in 1: KernelLaunch\n");
      for (const char* line :
           {"state 23 of 1\nstate 24 of 1\n", "stop 5\nstop 4\nstop 3\n", "stop 2\n", "stop 1\n"}) {
        CHECK_THAT(lines, Catch::Contains(line));
      }
    }
    int sent[2] = {1, 2}, got[2] = {};
    REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
      (void)ncclSend(&sent[r], 1, kInt32, 1 - r, comm, nullptr);
      return ncclRecv(&got[r], 1, kInt32, 1 - r, comm, nullptr);
    }) == ncclSuccess);
    const std::string lines = of_rank(1, plugged.lines());
    CHECK_THAT(lines, Catch::Contains(": P2pApi Send count 1 ncclInt32\n") &&
                          Catch::Contains(": P2p Send peer 0 count 1\n") &&
                          Catch::Contains(": P2p Recv peer 0 count 1\n"));
  }
  CHECK_THAT(plugged.lines(), Catch::Contains("finalize 0\n") && Catch::Contains("finalize 1\n"));
}

TEST_CASE("a plug-in of version 7 gets the tags of calls [case-103]") {
  const ServedBy served(nullptr, true);
  const Plugged plugged("libprofiler_v7.so");
  Ranks ranks(2);
  (void)plugged.lines();
  int value[2] = {1, 2};
  CallersCallConfig config;
  config.tag = 77;
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    (void)ncclAllReduceConfig(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr, config.get());
    (void)ncclSend(&value[r], 1, kInt32, 1 - r, comm, nullptr);
    return ncclRecv(&value[r], 1, kInt32, 1 - r, comm, nullptr);
  }) == ncclSuccess);
  const std::string lines = of_rank(0, plugged.lines());
  for (const char* line :
       {"CollApi AllReduce count 1 ncclInt32 root 0 captured false tag 77\n", " in 2 tag 77\n",
        "P2pApi Send count 1 ncclInt32 tag 0\n", "P2p Recv peer 1 count 1 tag 0\n"}) {
    CHECK_THAT(lines, Catch::Contains(line));
  }
}

TEST_CASE("a plug-in of version 4 sees groups and collectives") {
  const ServedBy served(nullptr, true);
  const Plugged plugged("libprofiler_v4.so");
  Ranks ranks(2);
  (void)plugged.lines();
  int value[2] = {1, 2};
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
  }) == ncclSuccess);
  CHECK_THAT(of_rank(0, plugged.lines()),
             Catch::StartsWith("0: start 1 in 0: Group\n"
                               "0: start 2 in 1: Coll AllReduce #0 ncclInt32 plan of allreduce_"));
}

TEST_CASE("calls of the fallback are not reported by us") {
  const ServedBy served(kFakeNccl, false);
  const Plugged plugged("libprofiler_v6.so");
  (void)plugged.lines();
  Ranks ranks(2);
  int value[2] = {1, 2};
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
  }) == ncclSuccess);
  CHECK(plugged.lines() == "");
}

TEST_CASE("a plug-in that fails, or cannot be loaded, changes nothing") {
  const ServedBy served(nullptr, true);
  const auto calls_work = [](int count) {
    Ranks ranks(count);
    std::vector<int> value(static_cast<size_t>(count), 1);
    return ranks.together([&](int r, ncclComm_t comm) {
      return ncclAllReduce(&value[static_cast<size_t>(r)], &value[static_cast<size_t>(r)], 1,
                           kInt32, kSum, comm, nullptr);
    }) == ncclSuccess &&
           value[0] == count;
  };
  {
    const Plugged plugged("libprofiler_v6.so");
    CHECK(calls_work(3));  // its init refuses three ranks
    CHECK_THAT(plugged.lines(), !Catch::Contains("start"));
  }
  for (const char* name : {"/nowhere/plugin.so", "nowhere", "none", "libc.so.6"}) {
    ::setenv("NCCL_PROFILER_PLUGIN", name, 1);
    CHECK(calls_work(2));
  }
  ::unsetenv("NCCL_PROFILER_PLUGIN");
}

}  // namespace
}  // namespace mscclc::nccl::testing
