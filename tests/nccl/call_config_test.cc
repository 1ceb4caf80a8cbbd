// The configuration of one call, and what a process asks of all: encryption.
#include <memory>
#include <vector>

#include "tests/nccl/forwarded_calls.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

constexpr const char* kLatest = "tests/fakes/nccl/23203/libnccl.so.2";

TEST_CASE("a call's own configuration [case-100]") {
  const ServedBy served("tests/fakes/nccl/23007/libnccl.so.2", false);
  Ranks ranks(1);
  CallersCallConfig config;
  const int in = 5;
  int out = 0;
  const auto call = [&] {
    return ncclAllReduceConfig(&in, &out, 1, kInt32, kSum, ranks.comms[0], nullptr, config.get());
  };
  CHECK(call() == ncclSuccess);
  CHECK(out == 5);
  config.size = 64, config.version = 23100;  // as of 2.31: what follows is not its
  config.event = &out;
  CHECK(call() == ncclSuccess);
  config.size = 63;
  CHECK(call() == ncclInvalidArgument);
  config.size = 72, config.magic = 0;
  CHECK(call() == ncclInvalidArgument);
  CHECK(ncclAllReduceConfig(&in, &out, 1, kInt32, kSum, ranks.comms[0], nullptr, nullptr) ==
        ncclSuccess);
}

/// The bounds that plans are asked to keep to, of calls in turn.
class BoundsOfCalls final : public ForwardedCalls {
 public:
  using ForwardedCalls::ForwardedCalls;
  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    bounds.push_back(call.most_blocks);
    return ForwardedCalls::serve(call, stream, capturing, what);
  }
  static inline std::vector<uint32_t> bounds;
};

TEST_CASE("a call's maxCTAs bounds its plan, and nothing that NCCL would ignore does [case-100]") {
  const ServedBy served(nullptr, true);
  serve_by<BoundsOfCalls>();
  Ranks ranks(2);
  BoundsOfCalls::bounds.clear();
  for (const int most : std::vector<int>{kNcclUndefinedInt, 4, 0, -3}) {
    CallersCallConfig config;
    config.max_ctas = most;
    int values[2] = {1, 2};
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      CHECK(ncclAllReduceConfig(&values[r], &values[r], 1, kInt32, kSum, ranks.comms[r], nullptr,
                                config.get()) == ncclSuccess);
    }
    CHECK(ncclGroupEnd() == ncclSuccess);
    CHECK(values[0] == 3);
  }
  CHECK(BoundsOfCalls::bounds == std::vector<uint32_t>{0, 0, 4, 4, 0, 0, 0, 0});
}

TEST_CASE("a call's CTA policy takes the place of its communicator's [case-102]") {
  const ServedBy served(kLatest, true);
  const auto left_to_nccl = [](int of_communicator, int of_call) {
    ncclUniqueId id;
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    ncclComm_t comms[2];
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      CallersConfig configured(72, 22700);
      configured.at(60) = of_communicator;
      (void)ncclCommInitRankConfig(&comms[r], 2, id, r, configured.get());
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    std::vector<int> memory[2] = {std::vector<int>(300), std::vector<int>(300)};
    ncclWindow_t windows[2];
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      (void)ncclCommWindowRegister(comms[r], memory[r].data(), 1200, &windows[r],
                                   kNcclWinCollSymmetric);
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    CallersCallConfig config;
    config.policy = of_call;
    const long before = calls_of_fake("AllGatherConfig", kLatest);
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      memory[r][0] = r + 1;
      CHECK(ncclAllGatherConfig(&memory[r][0], &memory[r][100], 1, kInt32, comms[r], nullptr,
                                config.get()) == ncclSuccess);
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    for (int r = 0; r < 2; ++r) {
      CHECK(ncclCommWindowDeregister(comms[r], windows[r]) == ncclSuccess);
      CHECK(ncclCommDestroy(comms[r]) == ncclSuccess);
    }
    const long left = calls_of_fake("AllGatherConfig", kLatest) - before;
    // The fake does not make calls with configurations.
    if (left == 0) CHECK((memory[1][100] == 1 && memory[0][101] == 2));
    return left;
  };
  CHECK(left_to_nccl(2, kNcclUndefinedInt) == 2);
  CHECK(left_to_nccl(2, 0) == 0);
  CHECK(left_to_nccl(0, 3) == 2);
  CHECK(left_to_nccl(1, 7) == 0);  // no policy: NCCL ignores it
}

TEST_CASE("an event that no library records is an error, never forgotten [case-100]") {
  CallersCallConfig config;
  int in = 5, out = 0;
  config.event = &in;
  const auto call = [&](const char* library, bool plans) {
    const ServedBy served(library, plans);
    Ranks ranks(2);
    return ranks.together([&](int, ncclComm_t comm) {
      return ncclBroadcastConfig(&in, &out, 1, kInt32, 0, comm, nullptr, config.get());
    });
  };
  CHECK(call("tests/fakes/nccl/23007/libnccl.so.2", false) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("2.30.7 records no launchCompletionEvent"));
  CHECK(call(kLatest, false) == ncclSuccess);
  CHECK(call(nullptr, true) == ncclInvalidUsage);  // the host has no events
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("ranks run on processors"));
}

TEST_CASE("encryption is refused, as sockets of plans would not be encrypted [case-101]") {
  const ServedBy served(kLatest, true);
  ncclEncryptionConfig_t config{sizeof config, MSCCLC_NCCL_MAGIC, 23203, 1,
                                "0123456789abcdef0123456789abcdef"};
  CHECK(ncclSetEncryption(&config) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("does not encrypt its sockets"));
  CHECK(calls_of_fake("SetEncryption", kLatest) == 0);
  config.mode = 0;
  CHECK(ncclSetEncryption(&config) == ncclSuccess);
  CHECK(ncclSetEncryption(nullptr) == ncclSuccess);
  CHECK(calls_of_fake("SetEncryption", kLatest) == 2);
  config.magic = 1;
  CHECK(ncclSetEncryption(&config) == ncclInvalidArgument);
}

}  // namespace
}  // namespace mscclc::nccl::testing
