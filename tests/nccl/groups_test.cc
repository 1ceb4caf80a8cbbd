// Groups of calls: when they begin, what drops them, what does not wait for their end.
#include <memory>
#include <string>

#include "tests/nccl/forwarded_calls.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

TEST_CASE("a communicator that ends before its group does takes the calls with it") {
  const ServedBy served(kFakeNccl, true);
  std::vector<int> values(2, 1);
  const auto all_reduce = [&](int r, ncclComm_t comm) {
    return ncclAllReduce(&values[r], &values[r], 1, kInt32, kSum, comm, nullptr);
  };
  for (const auto end : {ncclCommDestroy, ncclCommFinalize, ncclCommAbort}) {
    Ranks ranks(2);
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) CHECK(all_reduce(r, ranks.comms[r]) == ncclSuccess);
    for (ncclComm_t comm : ranks.comms) CHECK(end(comm) == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    CHECK(values == std::vector<int>(2, 1));
  }
}

/// A call whose launch is noted, by its input.
class NotedLaunch final : public ForwardedCall {
 public:
  NotedLaunch(std::unique_ptr<ServedCall> call, const void* input)
      : ForwardedCall(std::move(call)), input_(input) {}
  bool launch(Diagnostics& diagnostics) override {
    inputs.push_back(input_);
    return ForwardedCall::launch(diagnostics);
  }
  static inline std::vector<const void*> inputs;

 private:
  const void* const input_;
};

class NotedCalls final : public ForwardedCalls {
 public:
  using ForwardedCalls::ForwardedCalls;
  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    auto served = ForwardedCalls::serve(call, stream, capturing, what);
    return served == nullptr ? nullptr
                             : std::make_unique<NotedLaunch>(std::move(served), call.input);
  }
};

TEST_CASE("a group launches in rounds, as calls of one rank wait for those of others") {
  const ServedBy served(nullptr, true);
  serve_by<NotedCalls>();
  Ranks ranks(2);
  std::vector<int> values(6, 1);  // of three calls, each with both ranks
  for (int again = 0; again < 2; ++again) {
    NotedLaunch::inputs.clear();
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      for (int call = 0; call < 3; ++call) {
        int* const at = &values[2 * call + r];
        CHECK(ncclAllReduce(at, at, 1, kInt32, kSum, ranks.comms[r], nullptr) == ncclSuccess);
      }
    }
    CHECK(ncclGroupEnd() == ncclSuccess);
    REQUIRE(NotedLaunch::inputs.size() == 6);
    for (size_t i = 0; i < 6; ++i) CHECK(NotedLaunch::inputs[i] == &values[i]);
  }
  CHECK(values == std::vector<int>(6, 4));
}

/// Plans, none of which can be read.
class Unreadable final : public PlanProvider {
 public:
  std::shared_ptr<const PickedPlan> pick(const PlanRequest&, std::vector<PassedOver>*,
                                         Diagnostics& diagnostics) override {
    diagnostics.error("cannot-read", {}, "cannot read 'a plan': No such file or directory (2)");
    return nullptr;
  }
};

TEST_CASE("a rank that cannot read its plan leaves the call to no other library alone") {
  const ServedBy served(kFakeNccl, true);
  set_plan_calls([](Communicator& communicator, const CollectivesOptions& options,
                    Diagnostics& diagnostics) {
    return communicator.rank() != 1
               ? make_library_calls(communicator, options, diagnostics)
               : make_calls_by(std::make_shared<Unreadable>(), communicator, options, diagnostics);
  });
  Ranks ranks(2);
  std::vector<int> values(2, 1);
  const long by_nccl = calls_of_fake("AllReduce");
  std::vector<ncclResult_t> results(2);
  std::vector<std::string> said(2);
  on_threads(2, [&](int r) {
    results[r] = ncclAllReduce(&values[r], &values[r], 1, kInt32, kSum, ranks.comms[r], nullptr);
    said[r] = ncclGetLastError(nullptr);
  });
  CHECK(std::ranges::count(results, ncclSuccess) == 0);
  // Of either rank, whose threads share the text.
  for (const std::string& text : said) CHECK_THAT(text, Catch::Contains("cannot read 'a plan'"));
  // One thread that drives both does not wait for the first before it comes to the other.
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(&values[r], &values[r], 1, kInt32, kSum, comm, nullptr);
  }) != ncclSuccess);
  CHECK(values == std::vector<int>(2, 1));
  CHECK(calls_of_fake("AllReduce") == by_nccl);
}

/// What a row of a table picks, on all ranks, which is not for calls of their type.
class OfOtherType final : public PlanProvider {
 public:
  explicit OfOtherType(uint32_t rank) : rank_(rank) {}
  std::shared_ptr<const PickedPlan> pick(const PlanRequest&, std::vector<PassedOver>*,
                                         Diagnostics& diagnostics) override {
    diagnostics.error("wrong-plan", {},
                      "'" + std::to_string(rank_) + "/library.json' picks a plan for 'bf16'");
    return nullptr;
  }

 private:
  const uint32_t rank_;
};

void serve_by_plans_of_other_type() {
  set_plan_calls(
      [](Communicator& communicator, const CollectivesOptions& options, Diagnostics& diagnostics) {
        return make_calls_by(std::make_shared<OfOtherType>(communicator.rank()), communicator,
                             options, diagnostics);
      });
}

TEST_CASE("a call whose plan no rank can take is left to NCCL, as any that no plan serves") {
  const bool has_nccl = GENERATE(false, true);
  const ServedBy served(has_nccl ? kFakeNccl : nullptr, true);
  serve_by_plans_of_other_type();
  const int avg = 4;
  const bool averages = GENERATE(false, true), needs_plan = GENERATE(false, true);
  const Setting required("MSCCLC_REQUIRE_PLAN", needs_plan ? "1" : "0");
  Ranks ranks(2);
  for (int round = 0; round < 3; ++round) {
    std::vector<float> values(2);
    const auto all_reduce = [&](int r, ncclComm_t comm) {
      values[r] = static_cast<float>(1 + 2 * r);
      return ncclAllReduce(&values[r], &values[r], 1, kFloat, averages ? avg : kSum, comm, nullptr);
    };
    const long by_nccl = !has_nccl ? 0 : calls_of_fake("AllReduce");
    const bool fails = !has_nccl || needs_plan;
    std::vector<std::string> said(2);
    on_threads(2, [&](int r) {
      ranks.results[r] = all_reduce(r, ranks.comms[r]);
      said[r] = ncclGetLastError(nullptr);
    });
    if (fails) {
      CHECK(std::ranges::count(ranks.results, ncclSuccess) == 0);
      CHECK(values == std::vector<float>{1, 3});
      // Of either rank, whose threads share the text.
      for (const std::string& text : said) {
        CHECK_THAT(text, Catch::Contains("/library.json' picks a plan"));
      }
      continue;
    }
    CHECK(ranks.results == std::vector<ncclResult_t>(2, ncclSuccess));
    CHECK(values == std::vector<float>(2, averages ? 2.0f : 4.0f));
    CHECK(ranks.together(all_reduce) == ncclSuccess);
    CHECK(values == std::vector<float>(2, averages ? 2.0f : 4.0f));
    CHECK(calls_of_fake("AllReduce") == by_nccl + 4);
  }
}

TEST_CASE("a group that fails destroys nothing") {
  const ServedBy served(kFakeNccl, true);
  Ranks ranks(1);
  ncclGroupStart();
  CHECK(ncclCommDestroy(ranks.comms[0]) == ncclSuccess);
  CHECK(ncclBcast(nullptr, 1, 99, 0, ranks.comms[0], nullptr) == ncclInvalidArgument);
  CHECK(ncclGroupEnd() == ncclInvalidArgument);
  int count = 0;
  CHECK(ncclCommCount(ranks.comms[0], &count) == ncclSuccess);
  CHECK(count == 1);
}

TEST_CASE("groups in groups begin at the outermost end [case-53] [case-55]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(2);
  int x[2] = {1, 1};
  double y[2] = {0.5, 0.5};
  ncclGroupStart();
  ncclGroupStart();
  for (int r = 0; r < 2; ++r) {
    ncclGroupStart();
    (void)ncclAllReduce(&x[r], &x[r], 1, kInt32, kSum, ranks.comms[r], nullptr);
    (void)ncclAllReduce(&y[r], &y[r], 1, kDouble, kSum, ranks.comms[r], nullptr);
    CHECK(ncclGroupEnd() == ncclSuccess);
  }
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(x[0] == 1);
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(x[1] == 2);
  CHECK(y[0] == 1.0);
}

TEST_CASE("what NCCL has still in progress at a group's end is awaited of each communicator") {
  const ServedBy served(kFakeNccl, false);
  const Setting later("FAKE_NCCL_IN_PROGRESS", "3");
  Ranks ranks(2);
  const long before = calls_of_fake("CommGetAsyncError");
  int value[2] = {1, 2};
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
  }) == ncclSuccess);
  CHECK(value[1] == 3);
  CHECK(calls_of_fake("CommGetAsyncError") == before + 2 * (3 + 1));
}

TEST_CASE("that NCCL is in progress is no error that a communicator keeps") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(1);
  ncclResult_t state = ncclInternalError;
  {
    const Setting busy("FAKE_NCCL_BUSY", "1");
    CHECK(ncclCommGetAsyncError(ranks.comms[0], &state) == ncclSuccess);
  }
  CHECK(ncclCommGetAsyncError(ranks.comms[0], &state) == ncclSuccess);
  CHECK(state == ncclSuccess);
}

/// Plans that serve no all-to-all.
class WithoutAllToAll final : public ForwardedCalls {
 public:
  using ForwardedCalls::ForwardedCalls;
  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    if (call.kind == CollectiveKind::alltoall) return nullptr;
    return ForwardedCalls::serve(call, stream, capturing, what);
  }
};

TEST_CASE("what NCCL lacks is refused before anything of its group is launched [case-60]") {
  const ServedBy served("tests/fakes/nccl/22703/libnccl.so.2", true);
  serve_by<WithoutAllToAll>();
  Ranks ranks(2);
  int value[2] = {1, 2}, other[2] = {1, 2}, rows[2][2] = {}, received[2][2] = {};
  const auto add = [&](int* values) {
    return [values](int r, ncclComm_t comm) {
      return ncclAllReduce(&values[r], &values[r], 1, kInt32, kSum, comm, nullptr);
    };
  };
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    (void)add(value)(r, comm);
    return ncclAlltoAll(rows[r], received[r], 1, kInt32, comm, nullptr);
  }) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("AlltoAll: NCCL 2.27.3 has no such call"));
  CHECK(ranks.together(add(other)) == ncclSuccess);  // what was launched before it has ended, too
  CHECK(other[0] == 3);
  CHECK((value[0] == 1 && value[1] == 2));
}

TEST_CASE("an end without a start [case-54]") { CHECK(ncclGroupEnd() == ncclInvalidUsage); }

TEST_CASE("plan and fallback in one group, in both orders [case-59]") {
  const ServedBy served(kFakeNccl, true);
  Ranks ranks(2);
  // By plans: what has a built-in reduction. By the fake: sends, and reductions of our own.
  for (const bool plan_first : {true, false}) {
    int value[2] = {1, 10}, moved[2] = {0, 0};
    REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
      const auto reduce = [&] {
        (void)ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
      };
      const auto move = [&] {
        (void)ncclSend(&value[r], 1, kInt32, 1 - r, comm, nullptr);
        (void)ncclRecv(&moved[r], 1, kInt32, 1 - r, comm, nullptr);
      };
      if (plan_first) reduce();
      move();
      if (!plan_first) reduce();
      return ncclSuccess;
    }) == ncclSuccess);
    CHECK(value[0] == 11);
    CHECK(value[1] == 11);
    CHECK(moved[0] == (plan_first ? 11 : 10));
    CHECK(moved[1] == (plan_first ? 11 : 1));
  }
}

TEST_CASE("a wrong call drops its group, and no other [case-60]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(2);
  int value[2] = {1, 2};
  const auto reduce = [&](int r, ncclComm_t comm) {
    return ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
  };
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    (void)reduce(r, comm);
    return ncclAllReduce(&value[r], &value[r], 1, kInt32, 77, comm, nullptr);
  }) == ncclInvalidArgument);
  CHECK(value[0] == 1);
  CHECK(ranks.together(reduce) == ncclSuccess);
  CHECK(value[0] == 3);
}

TEST_CASE("errors of a group are the thread's [case-61]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(1);
  int value = 1;
  ncclGroupStart();
  CHECK(ncclAllReduce(&value, &value, 1, 99, kSum, ranks.comms[0], nullptr) == ncclInvalidArgument);
  std::thread([&] {
    CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclSuccess);
  }).join();
  CHECK(ncclGroupEnd() == ncclInvalidArgument);
}

TEST_CASE("ncclGroupSimulateEnd() launches nothing [case-63]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(1);
  int in = 5, out = 0;
  ncclSimInfo_t info{sizeof info, MSCCLC_NCCL_SIM_INFO_MAGIC, 22809, -2.0f};
  for (const unsigned magic : {MSCCLC_NCCL_SIM_INFO_MAGIC, 1u}) {
    info.magic = magic;
    ncclGroupStart();
    (void)ncclAllReduce(&in, &out, 1, kInt32, kSum, ranks.comms[0], nullptr);
    const bool right = magic == MSCCLC_NCCL_SIM_INFO_MAGIC;
    CHECK(ncclGroupSimulateEnd(&info) == (right ? ncclSuccess : ncclInvalidArgument));
    CHECK(out == 0);
  }
  CHECK(ncclGroupSimulateEnd(&info) == ncclInvalidUsage);
}

/// What ncclGroupSimulateEnd() says of two calls of a communicator of one rank.
float estimate(ncclComm_t comm) {
  int in = 5, out = 0;
  ncclSimInfo_t info{sizeof info, MSCCLC_NCCL_SIM_INFO_MAGIC, 22809, -2.0f};
  ncclGroupStart();
  ncclGroupStart();
  (void)ncclAllReduce(&in, &out, 1, kInt32, kSum, comm, nullptr);
  (void)ncclAllGather(&in, &out, 1, kInt32, comm, nullptr);
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(ncclGroupSimulateEnd(&info) == ncclSuccess);
  CHECK(out == 0);
  CHECK(ncclAllReduce(&in, &out, 1, kInt32, kSum, comm, nullptr) == ncclSuccess);
  CHECK(out == 5);
  return info.estimatedTime;
}

TEST_CASE("ncclGroupSimulateEnd() estimates by NCCL's model, or not at all [case-63]") {
  {
    const ServedBy served(kFakeNccl, true);
    Ranks ranks(1);
    CHECK(estimate(ranks.comms[0]) == 3.0f);
  }
  const ServedBy served(nullptr, true);
  Ranks ranks(1);
  CHECK(estimate(ranks.comms[0]) == -1.0f);
}

TEST_CASE("ncclGroupSimulateEnd() estimates no call without elements, compared or not") {
  const Setting compared("MSCCLC_CHECK_CALLS", GENERATE("0", "1"));
  const ServedBy served(nullptr, true);
  Ranks ranks(1);
  ncclSimInfo_t info{sizeof info, MSCCLC_NCCL_SIM_INFO_MAGIC, 22809, -2.0f};
  ncclGroupStart();
  CHECK(ncclAllReduce(nullptr, nullptr, 0, kInt32, kSum, ranks.comms[0], nullptr) == ncclSuccess);
  CHECK(ncclGroupSimulateEnd(&info) == ncclSuccess);
  CHECK(info.estimatedTime == 0.0f);
}

TEST_CASE("a group that is only simulated makes no communicators [case-63]") {
  const ServedBy served(kFakeNccl, false);
  const ncclUniqueId id = new_id();
  ncclSimInfo_t info{sizeof info, MSCCLC_NCCL_SIM_INFO_MAGIC, 22809, -2.0f};
  ncclComm_t comm = nullptr;
  ncclGroupStart();
  (void)ncclCommInitRank(&comm, 1, id, 0);
  CHECK(ncclGroupSimulateEnd(&info) == ncclSuccess);
  CHECK(info.estimatedTime == 0.0f);
  CHECK(comm == nullptr);
}

TEST_CASE("what does not wait for a group's end [case-64]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(1);
  void *memory = nullptr, *handle = nullptr;
  int count = 0;
  ncclGroupStart();
  CHECK(ncclMemAlloc(&memory, 100) == ncclSuccess);
  REQUIRE(memory != nullptr);
  CHECK(ncclCommRegister(ranks.comms[0], memory, 100, &handle) == ncclSuccess);
  CHECK(ncclCommCount(ranks.comms[0], &count) == ncclSuccess);
  CHECK(count == 1);
  CHECK(ncclCommDeregister(ranks.comms[0], handle) == ncclSuccess);
  CHECK(ncclMemFree(memory) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
}

ncclResult_t allreduce(int& value, ncclComm_t comm) {
  return ncclAllReduce(&value, &value, 1, kInt32, kSum, comm, nullptr);
}

TEST_CASE("who does not wait for a communicator waits for none of its calls") {
  const bool by_plans = GENERATE(false, true);
  const ServedBy served(by_plans ? nullptr : kFakeNccl, by_plans);
  const UnwaitedRanks ranks(2);
  int values[2] = {1, 2};
  CHECK(allreduce(values[0], ranks.comms[0]) == ncclInProgress);
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(ranks.comms[0], &state) == ncclSuccess);
  CHECK(state == ncclInProgress);
  CHECK(allreduce(values[0], ranks.comms[0]) == ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("is not done yet: ncclInProgress"));
  CHECK(ncclCommDestroy(ranks.comms[0]) == ncclInvalidArgument);
  CHECK(ncclCommDeregister(ranks.comms[0], values) == ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("ncclCommDeregister: what was asked of"));
  CHECK(ncclCommWindowDeregister(ranks.comms[0], reinterpret_cast<ncclWindow_t>(values)) ==
        ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr),
             Catch::Contains("ncclCommWindowDeregister: what was asked of"));
  CHECK(allreduce(values[1], ranks.comms[1]) == ncclInProgress);
  CHECK(ranks.await_all() == ncclSuccess);
  CHECK(values[0] == 3);
  CHECK(values[1] == 3);
  CHECK(sum_of(ranks.comms) == 3);
}

TEST_CASE("what is awaited of a call is not awaited any longer than the call lasts") {
  const ServedBy served(kFakeNccl, false);
  const auto never = [] { return false; };
  OwnThread failed([] { return ncclInvalidUsage; });
  CHECK_FALSE(failed.comes(never));
  CHECK(failed.result() == ncclInvalidUsage);
  const UnwaitedRanks ranks(2);
  CHECK_FALSE(comes_so_far(never, [&] { return one_has_ended(ranks.comms); }));
}

TEST_CASE("abort ends a call that no caller waits for") {
  const bool by_plans = GENERATE(false, true);
  const ServedBy served(by_plans ? nullptr : kFakeNccl, by_plans);
  int value = 1;  // what calls use outlives what may still make them
  UnwaitedRanks ranks(2);
  const CommPointer caller = find_comm(ranks.comms[0]);
  CHECK(allreduce(value, ranks.comms[0]) == ncclInProgress);
  for (ncclComm_t comm : ranks.comms) CHECK(ncclCommAbort(comm) == ncclSuccess);
  ranks.comms.clear();
  while (caller->unwaited > 0) std::this_thread::yield();
}

TEST_CASE("abort frees what NCCL uses for a call that no caller waits for after that call") {
  const ServedBy served(kFakeNccl, false);
  UnwaitedRanks ranks(2);
  const long called = calls_of_fake("AllReduce"), revoked = calls_of_fake("CommRevoke"),
             aborted = calls_of_fake("CommAbort");
  int value = 1;
  {
    const Held calls("AllReduce");
    CHECK(allreduce(value, ranks.comms[0]) == ncclInProgress);
    CHECK(comes_so_far([&] { return calls_of_fake("AllReduce") != called; },
                       [&] { return one_has_ended({ranks.comms[0]}); }));
    CHECK(ncclCommAbort(ranks.comms[0]) == ncclSuccess);
    CHECK(calls_of_fake("CommRevoke") == revoked + 1);
    CHECK(calls_of_fake("CommAbort") == aborted);
  }
  mscclc::testing::await_end_of_threads("mscclc-nccl");
  CHECK(calls_of_fake("CommAbort") == aborted + 1);
  CHECK(ncclCommAbort(ranks.comms[1]) == ncclSuccess);
  CHECK(calls_of_fake("CommAbort") == aborted + 2);
  ranks.comms.clear();
}

TEST_CASE("abort while NCCL's communicator is made for a call leaves none, and no call") {
  const ServedBy served(kFakeNccl, false);
  const Setting later("MSCCLC_NCCL_COMM", "lazy");
  UnwaitedRanks ranks(2);
  const long called = calls_of_fake("AllReduce"), registered = calls_of_fake("CommRegister"),
             aborted = calls_of_fake("CommAbort");
  int values[2] = {1, 2};
  for (int r = 0; r < 2; ++r) {
    void* handle = nullptr;
    CHECK(ncclCommRegister(ranks.comms[r], &values[r], sizeof(int), &handle) == ncclSuccess);
  }
  {
    const Held made("CommRegister");  // the last step
    for (int r = 0; r < 2; ++r) CHECK(allreduce(values[r], ranks.comms[r]) == ncclInProgress);
    CHECK(comes_so_far([&] { return calls_of_fake("CommRegister") >= registered + 2; },
                       [&] { return one_has_ended(ranks.comms); }));
    for (ncclComm_t comm : ranks.comms) CHECK(ncclCommAbort(comm) == ncclSuccess);
  }
  mscclc::testing::await_end_of_threads("mscclc-nccl");
  CHECK(calls_of_fake("CommAbort") == aborted + 2);
  CHECK(calls_of_fake("AllReduce") == called);
  ranks.comms.clear();
}

TEST_CASE("a call whose plan no rank can take is left to NCCL where no caller waits for it") {
  const ServedBy served(kFakeNccl, true);
  serve_by_plans_of_other_type();
  const Setting later("MSCCLC_NCCL_COMM", "lazy");
  const UnwaitedRanks ranks(2);
  for (int round = 0; round < 2; ++round) {
    int values[2] = {1, 2};
    for (int r = 0; r < 2; ++r) CHECK(allreduce(values[r], ranks.comms[r]) == ncclInProgress);
    CHECK(ranks.await_all() == ncclSuccess);
    CHECK((values[0] == 3 && values[1] == 3));
  }
}

TEST_CASE("what is wrong with a call that no caller waits for is said later") {
  const ServedBy served(nullptr, true);
  const UnwaitedRanks ranks(2);
  std::vector<int> values(3);
  CHECK(ncclAllReduce(values.data(), values.data() + 1, 2, kInt32, kSum, ranks.comms[0], nullptr) ==
        ncclInProgress);
  CHECK(await(ranks.comms[0]) == ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("overlap"));
  CHECK(sum_of(ranks.comms) == 3);
}

TEST_CASE("abort ends a wait for what NCCL says is in progress, with an error") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(1);
  float value = 1, factor = 2;
  ncclRedOp_t scaled = 0;  // which plans do not have
  REQUIRE(ncclRedOpCreatePreMulSum(&scaled, &factor, kFloat, kNcclScalarHostImmediate,
                                   ranks.comms[0]) == ncclSuccess);
  const Setting later("FAKE_NCCL_IN_PROGRESS", "1"), busy("FAKE_NCCL_BUSY", "1");
  const long before = calls_of_fake("CommGetAsyncError");
  OwnThread caller(
      [&] { return ncclAllReduce(&value, &value, 1, kFloat, scaled, ranks.comms[0], nullptr); });
  CHECK(caller.comes([&] { return calls_of_fake("CommGetAsyncError") != before; }));
  CHECK(ncclCommAbort(ranks.comms[0]) == ncclSuccess);
  CHECK(caller.result() == ncclInvalidUsage);
  ranks.comms.clear();
}

}  // namespace
}  // namespace mscclc::nccl::testing
