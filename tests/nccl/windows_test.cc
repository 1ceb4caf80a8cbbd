// Calls in symmetric windows.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "tests/nccl/forwarded_calls.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

/// Counts the calls whose buffers plans find registered.
class WindowCounts final : public ForwardedCalls {
 public:
  using ForwardedCalls::ForwardedCalls;
  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    if (call.registered) ++registered;
    return ForwardedCalls::serve(call, stream, capturing, what);
  }
  /// Since it was asked last.
  static int take_count() { return registered.exchange(0); }

 private:
  static inline std::atomic<int> registered{0};
};

/// Two ranks' memory, so much that plans would read and write each other's.
struct TwoWindows {
  static constexpr size_t kPart = 1 << 16;
  explicit TwoWindows(Ranks& of) : ranks(of) {}
  /// The same pointer of both ranks.
  int* at(int rank, size_t part) { return memory[rank].data() + part * kPart; }
  void open(size_t parts_of_rank_1, int flags) {
    REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
      const size_t parts = r == 1 ? parts_of_rank_1 : 8;
      return ncclCommWindowRegister(comm, at(r, 0), parts * kPart * sizeof(int), &windows[r],
                                    flags);
    }) == ncclSuccess);
  }
  void close() {
    for (int r = 0; r < 2; ++r) {
      CHECK(ncclCommWindowDeregister(ranks.comms[r], windows[r]) == ncclSuccess);
    }
  }
  /// An allgather of the part `from` to the parts from `to` on, checked; how many ranks' plans
  /// found it registered.
  int gather(size_t from, size_t to) {
    for (int r = 0; r < 2; ++r) {
      std::iota(at(r, from), at(r, from + 1), ++seed + r * 1'000'000);
    }
    const std::vector<int> sent[2] = {{at(0, from), at(0, from + 1)},
                                      {at(1, from), at(1, from + 1)}};
    (void)WindowCounts::take_count();
    REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
      return ncclAllGather(at(r, from), at(r, to), kPart, kInt32, comm, nullptr);
    }) == ncclSuccess);
    for (int r = 0; r < 2; ++r) {
      for (size_t p = 0; p < 2; ++p) {
        CHECK(std::equal(sent[p].begin(), sent[p].end(), at(r, to + p)));
      }
    }
    return WindowCounts::take_count();
  }

  Ranks& ranks;
  std::vector<int> memory[2] = {std::vector<int>(8 * kPart), std::vector<int>(8 * kPart)};
  ncclWindow_t windows[2] = {};
  int seed = 0;
};

TEST_CASE("plans reach symmetric windows, and nothing else that is registered [case-91]") {
  const ServedBy served(kFakeNccl, true);
  serve_by<WindowCounts>();
  Ranks ranks(2);
  TwoWindows two(ranks);
  void* handles[2];
  for (int r = 0; r < 2; ++r) {
    REQUIRE(ncclCommRegister(ranks.comms[r], two.at(r, 0), 1024, &handles[r]) == ncclSuccess);
  }
  CHECK(two.gather(0, 1) == 0);
  two.open(8, 0);
  CHECK(two.gather(0, 1) == 0);
  two.close();
  two.open(8, kNcclWinCollSymmetric);
  CHECK(two.gather(0, 1) == 2);
  CHECK(two.gather(3, 6) == 2);
  CHECK(two.gather(0, 1) == 2);
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclBroadcast(two.at(r, 0), two.at(r, 1), two.kPart, kInt32, 1, comm, nullptr);
  }) == ncclSuccess);
  CHECK(WindowCounts::take_count() == 0);
  two.close();
  CHECK(two.gather(0, 1) == 0);
}

TEST_CASE("only what lies in the windows of all ranks is registered") {
  const ServedBy served(kFakeNccl, true);
  serve_by<WindowCounts>();
  Ranks ranks(2);
  TwoWindows two(ranks);
  two.open(5, kNcclWinCollSymmetric);
  CHECK(two.gather(0, 3) == 2);
  CHECK(two.gather(0, 4) == 0);  // rank 1's ends in the middle
  CHECK(two.gather(0, 6) == 0);
  two.close();
  ::setenv("FAKE_NCCL_WINDOWLESS", "1", 1);
  two.open(8, kNcclWinCollSymmetric);
  ::unsetenv("FAKE_NCCL_WINDOWLESS");
  CHECK(two.windows[0] != nullptr);
  CHECK(two.windows[1] == nullptr);
  CHECK(two.gather(0, 1) == 0);
  two.close();
}

TEST_CASE("a CTA policy of zero leaves copies in symmetric windows to NCCL [case-102]") {
  const ServedBy served(kFakeNccl, true);
  serve_by<WindowCounts>();
  // How many of two ranks' calls NCCL serves, inside of windows and outside.
  const auto left_to_nccl = [] {
    Ranks ranks(2);
    TwoWindows two(ranks);
    const auto gather = [&] {
      const long before = calls_of_fake("AllGather");
      const int by_plans_in_windows = two.gather(0, 1);
      const long by_nccl = calls_of_fake("AllGather") - before;
      CHECK((by_nccl == 0 || by_plans_in_windows == 0));
      return by_nccl;
    };
    const long outside = gather();
    two.open(8, kNcclWinCollSymmetric);
    const long inside = gather();
    int value[2] = {1, 2};
    REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
      return ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
    }) == ncclSuccess);
    CHECK(calls_of_fake("AllReduce") == 0);  // nothing adds up without thread blocks
    two.close();
    return std::pair(outside, inside);
  };
  CHECK(left_to_nccl() == std::pair(0L, 0L));
  for (const char* policy : {"2", "3", "ZERO", "zero|Efficiency", "Efficiency|later|ZERO"}) {
    INFO(policy);
    const Setting set("NCCL_CTA_POLICY", policy);
    CHECK(left_to_nccl() == std::pair(0L, 2L));
  }
  for (const char* policy : {"0", "1", "4", "Default", "EFFICIENCY", "later"}) {
    INFO(policy);
    const Setting set("NCCL_CTA_POLICY", policy);
    CHECK(left_to_nccl() == std::pair(0L, 0L));
  }
}

TEST_CASE("MSCCLC_REQUIRE_PLAN refuses no window, which is NCCL's in any case") {
  const Setting lazily("MSCCLC_NCCL_COMM", GENERATE("init", "lazy"));
  const Setting required("MSCCLC_REQUIRE_PLAN", "1");
  const ServedBy served(kFakeNccl, true);
  serve_by<WindowCounts>();
  Ranks ranks(2);
  TwoWindows two(ranks);
  two.open(8, kNcclWinCollSymmetric);
  CHECK(two.gather(0, 1) == 2);
  two.close();
}

TEST_CASE("where no NCCL can copy without thread blocks, plans serve the call [case-102]") {
  const ServedBy served("tests/fakes/nccl/22703/libnccl.so.2", true);
  serve_by<WindowCounts>();
  const Setting set("NCCL_CTA_POLICY", "2");
  Ranks ranks(2);
  TwoWindows two(ranks);
  two.open(8, kNcclWinCollSymmetric);
  CHECK(two.gather(0, 1) == 2);
  two.close();
}

TEST_CASE("MSCCLC_CHECK_CALLS names a call that lies in windows on one rank only") {
  const ServedBy served(kFakeNccl, true);
  ::setenv("MSCCLC_CHECK_CALLS", "1", 1);
  {
    Ranks ranks(2);
    TwoWindows two(ranks);
    two.open(8, kNcclWinCollSymmetric);
    std::vector<int> outside(2 * two.kPart);
    CHECK(ranks.together([&](int r, ncclComm_t comm) {
      int* const to = r == 0 ? two.at(0, 1) : outside.data();
      return ncclAllGather(two.at(r, 0), to, two.kPart, kInt32, comm, nullptr);
    }) == ncclInvalidUsage);
    CHECK_THAT(ncclGetLastError(nullptr), Catch::EndsWith(", in symmetric windows"));
    two.close();
  }
  ::unsetenv("MSCCLC_CHECK_CALLS");
}

TEST_CASE("the window that was registered last is what lies there") {
  const ServedBy served(kFakeNccl, true);
  serve_by<WindowCounts>();
  Ranks ranks(2);
  TwoWindows two(ranks);
  two.open(8, kNcclWinCollSymmetric);
  CHECK(two.gather(0, 1) == 2);
  const ncclWindow_t old[2] = {two.windows[0], two.windows[1]};
  two.open(8, kNcclWinCollSymmetric);
  CHECK(two.gather(0, 1) == 2);
  two.close();
  CHECK(two.gather(0, 1) == 2);
  for (int r = 0; r < 2; ++r) two.windows[r] = old[r];
  two.close();
  CHECK(two.gather(0, 1) == 0);
}

}  // namespace
}  // namespace mscclc::nccl::testing
