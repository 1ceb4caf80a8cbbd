// How communicators end; errors from other threads; memory; processes.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/call.h"
#include "runtime/doors/nccl/comm/comm.h"
#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/runtime/named_threads.h"
#include "tests/helpers/runtime/processes.h"
#include "tests/nccl/forwarded_calls.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

TEST_CASE("the fallback's own calls stay inside it [case-8]") {
  const ServedBy served(kFakeNccl, false);
  const long before = calls_of_fake("MemFree");
  { Ranks ranks(2); }
  // One for each destroyed communicator: had they come to us, we would have passed them on as well,
  // but from inside, where nothing of ours may be entered.
  CHECK(calls_of_fake("MemFree") == before + 2);
  CHECK(calls_of_fake("CommFinalize") >= 2);
}

TEST_CASE("no communicator of the fallback is made before a call needs it") {
  const ServedBy served(kFakeNccl, true);
  ::setenv("MSCCLC_NCCL_COMM", "lazy", 1);
  {
    Ranks ranks(2);
    const long before = calls_of_fake("CommInitRankConfig");
    int value[2] = {1, 2};
    CHECK(ranks.together([&](int r, ncclComm_t comm) {
      return ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
    }) == ncclSuccess);
    CHECK(value[0] == 3);
    CHECK(calls_of_fake("CommInitRankConfig") == before);
    ncclRedOp_t ops[2];
    CHECK(ranks.together([&](int r, ncclComm_t comm) {
      int scalar = 2;
      (void)ncclRedOpCreatePreMulSum(&ops[r], &scalar, kInt32, kNcclScalarHostImmediate, comm);
      return ncclAllReduce(&value[r], &value[r], 1, kInt32, ops[r], comm, nullptr);
    }) == ncclSuccess);
    CHECK(value[1] == 12);
    CHECK(calls_of_fake("CommInitRankConfig") == before + 2);
  }
  ::unsetenv("MSCCLC_NCCL_COMM");
}

TEST_CASE("MSCCLC_REQUIRE_PLAN makes a fallback an error") {
  const ServedBy served(kFakeNccl, false);
  ::setenv("MSCCLC_REQUIRE_PLAN", "1", 1);
  {
    Ranks ranks(2);
    int value = 0;
    CHECK(ranks.together([&](int, ncclComm_t comm) {
      return ncclAllReduce(&value, &value, 1, kInt32, kSum, comm, nullptr);
    }) == ncclInvalidUsage);
    CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("MSCCLC_REQUIRE_PLAN"));
  }
  ::unsetenv("MSCCLC_REQUIRE_PLAN");
}
TEST_CASE("abort ends a call that waits for a peer [case-79] [case-80]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(2);
  int value = 1;
  const long before = calls_of_fake("AllReduce");
  OwnThread caller(
      [&] { return ncclAllReduce(&value, &value, 1, kInt32, kSum, ranks.comms[0], nullptr); });
  CHECK(caller.comes([&] { return calls_of_fake("AllReduce") != before; }));
  CHECK(ncclCommAbort(ranks.comms[0]) == ncclSuccess);
  CHECK(caller.result() != ncclSuccess);
  CHECK(ncclCommAbort(ranks.comms[0]) == ncclInvalidArgument);
  CHECK(ncclCommDestroy(ranks.comms[0]) == ncclInvalidArgument);
  CHECK(ncclCommAbort(ranks.comms[1]) == ncclSuccess);
  ranks.comms.clear();
}

/// The library's plans, and how many calls were launched by them.
class LaunchedCalls final : public ForwardedCalls {
 public:
  using ForwardedCalls::ForwardedCalls;
  static inline std::atomic<int> launched{0};
  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    auto served = ForwardedCalls::serve(call, stream, capturing, what);
    return served == nullptr ? nullptr : std::make_unique<Counted>(std::move(served));
  }

 private:
  struct Counted final : ForwardedCall {
    using ForwardedCall::ForwardedCall;
    bool launch(Diagnostics& diagnostics) override {
      const bool done = ForwardedCall::launch(diagnostics);
      ++launched;
      return done;
    }
  };
};

TEST_CASE("abort ends a plan that waits for a peer [case-79]") {
  const ServedBy served(nullptr, true);
  serve_by<LaunchedCalls>();
  int value[2] = {1, 1};  // what calls use outlives what may still make them
  Ranks ranks(2);
  const auto reduce = [&](int r, ncclComm_t comm) {
    return ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
  };
  REQUIRE(ranks.together(reduce) == ncclSuccess);  // the plan is loaded
  const int before = LaunchedCalls::launched;
  OwnThread caller([&] { return reduce(0, ranks.comms[0]); });
  CHECK(caller.comes([&] { return LaunchedCalls::launched != before; }));
  CHECK(ncclCommAbort(ranks.comms[0]) == ncclSuccess);
  CHECK(caller.result() != ncclSuccess);
  ncclResult_t error = ncclSuccess;
  while (error == ncclSuccess)
    REQUIRE(ncclCommGetAsyncError(ranks.comms[1], &error) == ncclSuccess);
  CHECK(error == ncclRemoteError);
  CHECK(ncclCommAbort(ranks.comms[1]) == ncclSuccess);
  ranks.comms.clear();
}

TEST_CASE("a call whose peer has given up is its fault, as the communicator says") {
  const ServedBy served(nullptr, true);
  int value[2] = {1, 1};
  Ranks ranks(2);
  REQUIRE(ranks.comms.size() == 2);
  CHECK(ncclCommAbort(ranks.comms[1]) == ncclSuccess);
  CHECK(ncclAllReduce(&value[0], &value[0], 1, kInt32, kSum, ranks.comms[0], nullptr) ==
        ncclRemoteError);
  ncclResult_t error = ncclSuccess;
  CHECK(ncclCommGetAsyncError(ranks.comms[0], &error) == ncclSuccess);
  CHECK(error == ncclRemoteError);
  CHECK(ncclCommAbort(ranks.comms[0]) == ncclSuccess);
  ranks.comms.clear();
}

TEST_CASE("errors have the codes that NCCL has for them") {
  const auto code = [](const char* first) {
    Diagnostics diagnostics;
    diagnostics.warning("unknown-variable", {}, "no error");
    diagnostics.error(first, {}, "the first");
    diagnostics.error("memory", {}, "what comes of it");
    return result_of(diagnostics);
  };
  for (const char* argument : {"bad-call", "overlap", "no-buffer", "wrong-size"}) {
    CHECK(code(argument) == ncclInvalidArgument);
  }
  for (const char* usage : {"call-differs", "plan-differs", "no-plan", "two-threads", "aborted"}) {
    CHECK(code(usage) == ncclInvalidUsage);
  }
  for (const char* remote : {"peer-failed", "rank-died", "rank-gave-up", "hang"}) {
    CHECK(code(remote) == ncclRemoteError);
  }
  CHECK(code("no-descriptors") == ncclSystemError);
  CHECK(code("bad-variable") == ncclInvalidUsage);
  CHECK(code("what no table has") == ncclInternalError);
  CHECK(result_of(Diagnostics()) == ncclInternalError);
}

TEST_CASE("an error of the machine has the code of what was tried, any other its own") {
  const auto code = [](const char* error) {
    Diagnostics diagnostics;
    diagnostics.error(error, {}, "it fails");
    return fail(ncclUnhandledCudaError, "a test", diagnostics);
  };
  CHECK(code("cuda") == ncclUnhandledCudaError);
  CHECK(code("what no table has") == ncclUnhandledCudaError);
  CHECK(code("no-descriptors") == ncclSystemError);
  CHECK(code("bad-variable") == ncclInvalidUsage);
  CHECK(code("rank-died") == ncclRemoteError);
}

TEST_CASE("what NCCL still makes when a communicator is aborted is aborted, too [case-24]") {
  const ServedBy served(kFakeNccl, false);
  ::setenv("FAKE_NCCL_STUCK", "1", 1);
  const long made = calls_of_fake("CommInitRankConfig"), aborted = calls_of_fake("CommAbort");
  const ncclUniqueId id = new_id();
  CallersConfig config = unwaited();
  ncclComm_t comm = nullptr;
  REQUIRE(ncclCommInitRankConfig(&comm, 1, id, 0, config.get()) == ncclInProgress);
  CHECK(comes_so_far([&] { return calls_of_fake("CommInitRankConfig") != made; },
                     [&] { return one_has_ended({comm}); }));
  CHECK(ncclCommAbort(comm) == ncclSuccess);
  mscclc::testing::await_end_of_threads("mscclc-nccl");  // it uses the fake NCCL
  ::unsetenv("FAKE_NCCL_STUCK");
  CHECK(calls_of_fake("CommAbort") == aborted + 1);
}

TEST_CASE("finalize and destroy [case-81]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(1);
  ncclComm_t comm = ranks.comms[0];
  int value = 1;
  CHECK(ncclCommFinalize(comm) == ncclSuccess);
  CHECK(ncclCommFinalize(comm) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, comm, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommDestroy(comm) == ncclSuccess);
  CHECK(ncclCommDestroy(comm) == ncclInvalidArgument);
  ranks.comms.clear();
}

/// A communicator of one rank, which callers do not wait for, as they hold it and as we do.
struct Unwaited {
  Unwaited() : ranks(std::make_unique<UnwaitedRanks>(1)), handle(ranks->comms[0]) {
    comm = find_comm(handle);
    ranks->comms.clear();  // tests end it
  }
  std::unique_ptr<UnwaitedRanks> ranks;
  const ncclComm_t handle;
  CommPointer comm;
};

TEST_CASE("an abort frees NCCL's communicator also after a call that found no memory") {
  const ServedBy served(kFakeNccl, false);
  const Unwaited one;
  NcclCall call;
  call.comm = one.comm;
  call.make = [](const RealNccl&, ncclComm_t) -> ncclResult_t { throw std::bad_alloc(); };
  const long aborted = calls_of_fake("CommAbort");
  CHECK(make_calls({call}) == ncclInProgress);
  CHECK(await(one.handle) == ncclSystemError);
  CHECK(ncclCommAbort(one.handle) == ncclSuccess);
  CHECK(calls_of_fake("CommAbort") == aborted + 1);
  mscclc::testing::await_end_of_threads("mscclc-nccl");
}

TEST_CASE("abort ends a finalize that waits") {
  const ServedBy served(kFakeNccl, false);
  const Setting never("FAKE_NCCL_UNFINALIZED", "1");
  Unwaited one;
  const long before = calls_of_fake("CommFinalize");
  CHECK(ncclCommFinalize(one.handle) == ncclInProgress);
  CHECK(comes_so_far([&] { return calls_of_fake("CommFinalize") != before; },
                     [&] { return one_has_ended({one.handle}); }));
  CHECK(ncclCommDestroy(one.handle) == ncclInvalidArgument);  // it is not finalized yet
  CHECK(ncclCommAbort(one.handle) == ncclSuccess);
  mscclc::testing::await_end_of_threads("mscclc-nccl");
  CHECK(one.comm->stage == Stage::aborted);
}

TEST_CASE("what is aborted stays so, whenever it is finalized") {
  const ServedBy served(kFakeNccl, false);
  const Setting never("FAKE_NCCL_UNFINALIZED", "1");
  for (int i = 0; i < 50; ++i) {
    Unwaited one;
    const long aborted = calls_of_fake("CommAbort");
    ncclResult_t result = ncclSuccess;
    std::thread finalizer([&] { result = ncclCommFinalize(one.handle); });
    CHECK(ncclCommAbort(one.handle) == ncclSuccess);
    finalizer.join();
    CHECK(result != ncclSuccess);
    mscclc::testing::await_end_of_threads("mscclc-nccl");
    CHECK(one.comm->stage == Stage::aborted);
    CHECK(calls_of_fake("CommAbort") == aborted + 1);
  }
}

TEST_CASE("a group finalizes nothing that is aborted before its end") {
  const ServedBy served(kFakeNccl, false);
  const bool fails = GENERATE(false, true);
  Ranks ranks(1);
  const CommPointer comm = find_comm(ranks.comms[0]);
  const long before = calls_of_fake("CommFinalize");
  ncclGroupStart();
  CHECK(ncclCommFinalize(ranks.comms[0]) == ncclSuccess);
  CHECK(ncclCommAbort(ranks.comms[0]) == ncclSuccess);
  if (fails) CHECK(ncclCommFinalize(ranks.comms[0]) == ncclInvalidArgument);
  CHECK(ncclGroupEnd() == (fails ? ncclInvalidArgument : ncclInvalidUsage));
  CHECK(comm->stage == Stage::aborted);
  CHECK(calls_of_fake("CommFinalize") == before);
  ranks.comms.clear();
}

TEST_CASE("NULL ends nothing [case-82]") {
  CHECK(ncclCommFinalize(nullptr) == ncclSuccess);
  CHECK(ncclCommDestroy(nullptr) == ncclSuccess);
  CHECK(ncclCommAbort(nullptr) == ncclSuccess);
  CHECK(ncclCommRevoke(nullptr, 0) == ncclSuccess);
}

TEST_CASE("a second thread asks for errors while calls are made [case-83]") {
  const ServedBy served(kFakeNccl, true);
  Ranks ranks(2);
  std::atomic<bool> stop{false};
  std::atomic<int> asked{0};
  std::thread watchdog([&] {
    while (!stop) {
      for (ncclComm_t comm : ranks.comms) {
        ncclResult_t error = ncclInternalError;
        if (ncclCommGetAsyncError(comm, &error) == ncclSuccess && error == ncclSuccess) ++asked;
      }
    }
  });
  int value[2] = {0, 0};
  for (int i = 0; i < 300; ++i) {
    CHECK(ranks.together([&](int r, ncclComm_t comm) {
      return ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
    }) == ncclSuccess);
  }
  while (asked == 0) std::this_thread::yield();
  stop = true;
  watchdog.join();
  ncclResult_t error = ncclSuccess;
  CHECK(ncclCommGetAsyncError(nullptr, &error) == ncclInvalidArgument);
  CHECK(ncclCommGetAsyncError(ranks.comms[0], nullptr) == ncclInvalidArgument);
}

TEST_CASE("revoke, then split [case-85]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(2);
  int value = 1;
  CHECK(ncclCommRevoke(ranks.comms[0], 1) == ncclInvalidArgument);
  for (ncclComm_t comm : ranks.comms) CHECK(ncclCommRevoke(comm, 0) == ncclSuccess);
  CHECK(ncclCommRevoke(ranks.comms[0], 0) == ncclInvalidArgument);
  CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, ranks.comms[0], nullptr) ==
        ncclInvalidUsage);
  CHECK(ncclCommFinalize(ranks.comms[0]) == ncclInvalidUsage);
  std::vector<ncclComm_t> children(2);
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclCommSplit(comm, 0, r, &children[r], nullptr);
  }) == ncclSuccess);
  int out[2] = {1, 2};
  ncclGroupStart();
  for (int r = 0; r < 2; ++r) {
    (void)ncclAllReduce(&out[r], &out[r], 1, kInt32, kSum, children[r], nullptr);
  }
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(out[0] == 3);
  for (ncclComm_t comm : children) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("a revoke is in progress until what it ends is over, then there are children [case-85]") {
  const ServedBy served(kFakeNccl, false);
  const UnwaitedRanks ranks(2);
  std::vector<ncclComm_t> children(2);
  int value = 0;
  {
    const Held unwinds("GroupEnd");
    const long before = calls_of_fake("GroupEnd");
    REQUIRE(ncclRecv(&value, 1, kInt32, 1, ranks.comms[0], nullptr) == ncclInProgress);
    CHECK(comes_so_far([&] { return calls_of_fake("GroupEnd") != before; },
                       [&] { return one_has_ended({ranks.comms[0]}); }));
    CHECK(ncclCommRevoke(ranks.comms[0], 0) == ncclInProgress);
    CHECK(ncclCommRevoke(ranks.comms[1], 0) == ncclSuccess);  // nothing is under way
    ncclResult_t state = ncclSuccess;
    CHECK(ncclCommGetAsyncError(ranks.comms[0], &state) == ncclSuccess);
    CHECK(state == ncclInProgress);
    CHECK(ncclCommSplit(ranks.comms[0], 0, 0, &children[0], nullptr) == ncclInvalidArgument);
  }
  CHECK(await(ranks.comms[0]) == ncclSuccess);
  for (int r = 0; r < 2; ++r) {
    CHECK(ncclCommSplit(ranks.comms[r], 0, 0, &children[r], nullptr) == ncclInProgress);
  }
  CHECK(ranks.await_all() == ncclSuccess);
  CHECK(sum_of(children) == 3);
  for (ncclComm_t comm : children) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("an abort beside a revoke frees NCCL's communicator after the revoke") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(1);
  const long revoked = calls_of_fake("CommRevoke"), aborted = calls_of_fake("CommAbort");
  std::optional<OwnThread> revoker, aborter;
  {
    const Held revoking("CommRevoke");
    revoker.emplace([&] { return ncclCommRevoke(ranks.comms[0], 0); });
    CHECK(revoker->comes([&] { return calls_of_fake("CommRevoke") != revoked; }));
    aborter.emplace([&] { return ncclCommAbort(ranks.comms[0]); });
    CHECK(aborter->comes([&] {
      return calls_of_fake("CommRevoke") >= revoked + 2 || calls_of_fake("CommAbort") != aborted;
    }));
    CHECK(calls_of_fake("CommAbort") == aborted);
  }
  (void)revoker->result();
  CHECK(aborter->result() == ncclSuccess);
  CHECK(calls_of_fake("CommAbort") == aborted + 1);
  ranks.comms.clear();
}

/// Ranks 0 and 1 of three go on without rank 2, and end what waits for it.
void shrink_two(Ranks& ranks) {
  std::vector<ncclComm_t> rest(3);
  on_threads(2, [&](int r) {
    int lost = 2;
    ranks.results[r] =
        ncclCommShrink(ranks.comms[r], &lost, 1, &rest[r], nullptr, kNcclShrinkAbort);
  });
  CHECK(ranks.results == std::vector<ncclResult_t>(3, ncclSuccess));
  for (ncclComm_t comm : rest) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("a shrink that aborts ends what NCCL waits for [case-34]") {
  // With ncclCommRevoke() and without.
  const char* const library =
      GENERATE("tests/fakes/nccl/22809/libnccl.so.2", "tests/fakes/nccl/22703/libnccl.so.2");
  const ServedBy served(library, false);
  Ranks ranks(3);
  const long before = calls_of_fake("Recv", library);
  int value = 0;
  OwnThread receiver([&] { return ncclRecv(&value, 1, kInt32, 2, ranks.comms[0], nullptr); });
  CHECK(receiver.comes([&] { return calls_of_fake("Recv", library) != before; }));
  shrink_two(ranks);
  CHECK(receiver.result() != ncclSuccess);
}

TEST_CASE("a shrink that aborts ends the messages of plans [case-34]") {
  const ServedBy served(nullptr, true);
  serve_by<LaunchedCalls>();
  int value[3] = {0, 0, 7};
  Ranks ranks(3);
  const auto message = [&](int r) {
    return r == 2 ? ncclSend(&value[2], 1, kInt32, 0, ranks.comms[2], nullptr)
                  : ncclRecv(&value[0], 1, kInt32, 2, ranks.comms[0], nullptr);
  };
  on_threads(3, [&](int r) {  // the route is made
    if (r != 1) ranks.results[r] = message(r);
  });
  REQUIRE(ranks.results == std::vector<ncclResult_t>(3, ncclSuccess));
  const int before = LaunchedCalls::launched;
  OwnThread receiver([&] { return message(0); });
  CHECK(receiver.comes([&] { return LaunchedCalls::launched != before; }));
  shrink_two(ranks);
  CHECK(receiver.result() != ncclSuccess);
}

TEST_CASE("a shrink that aborts ends what no caller waits for, and the parent has no error of it") {
  const bool by_plans = GENERATE(false, true);
  const ServedBy served(by_plans ? nullptr : kFakeNccl, by_plans);
  if (by_plans) serve_by<LaunchedCalls>();
  int value = 0, lost = 2;
  const UnwaitedRanks ranks(3);
  REQUIRE(sum_of(ranks.comms) == 6);  // the plan is loaded
  const int before = LaunchedCalls::launched;
  REQUIRE(ncclAllReduce(&value, &value, 1, kInt32, kSum, ranks.comms[0], nullptr) ==
          ncclInProgress);
  CHECK(comes_so_far([&] { return !by_plans || LaunchedCalls::launched != before; },
                     [&] { return one_has_ended({ranks.comms[0]}); }));
  std::vector<ncclComm_t> rest(2);
  for (int r = 0; r < 2; ++r) {
    CHECK(ncclCommShrink(ranks.comms[r], &lost, 1, &rest[r], nullptr, kNcclShrinkAbort) ==
          ncclInProgress);
  }
  for (int r = 0; r < 2; ++r) CHECK(await(ranks.comms[r]) == ncclSuccess);
  CHECK(sum_of(rest) == 3);
  for (ncclComm_t comm : rest) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("communicators come and go [case-87]") {
  const ServedBy served(kFakeNccl, false);
  { Ranks ranks(2); }
  const size_t descriptors = mscclc::testing::open_descriptors();
  const size_t threads = mscclc::testing::running_threads();
  for (int i = 0; i < 30; ++i) Ranks ranks(2);
  CHECK(mscclc::testing::open_descriptors() <= descriptors);
  CHECK(mscclc::testing::threads_come_down_to(threads));
}

TEST_CASE("memory [case-89]") {
  const bool fake = GENERATE(false, true);
  const ServedBy served(fake ? kFakeNccl : nullptr, false);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1} << 20}) {
    void* memory = nullptr;
    REQUIRE(ncclMemAlloc(&memory, bytes) == ncclSuccess);
    REQUIRE(memory != nullptr);
    std::memset(memory, 1, bytes);
    std::thread([&] { CHECK(ncclMemFree(memory) == ncclSuccess); }).join();
  }
  CHECK(ncclMemAlloc(nullptr, 1) == ncclInvalidArgument);
  CHECK(ncclMemFree(nullptr) == ncclSuccess);
  int foreign = 0;
  if (!fake) CHECK(ncclMemFree(&foreign) == ncclInvalidArgument);
}

TEST_CASE("registration [case-90]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(1);
  ncclComm_t comm = ranks.comms[0];
  std::vector<char> buffer(100);
  void *a = nullptr, *b = nullptr, *inner = nullptr;
  CHECK(ncclCommRegister(comm, buffer.data(), 100, &a) == ncclSuccess);
  CHECK(ncclCommRegister(comm, buffer.data(), 100, &b) == ncclSuccess);
  CHECK(ncclCommRegister(comm, buffer.data() + 10, 20, &inner) == ncclSuccess);
  CHECK(a != b);
  CHECK(ncclCommDeregister(comm, a) == ncclSuccess);
  CHECK(ncclCommDeregister(comm, a) == ncclInvalidUsage);
  CHECK(ncclCommDeregister(comm, inner) == ncclSuccess);
  CHECK(ncclCommDeregister(comm, b) == ncclSuccess);
  CHECK(ncclCommDeregister(comm, nullptr) == ncclSuccess);
  CHECK(ncclCommRegister(comm, buffer.data(), 0, &a) == ncclInvalidArgument);
  CHECK(ncclCommRegister(comm, nullptr, 1, &a) == ncclInvalidArgument);
  ::setenv("NCCL_LOCAL_REGISTER", "0", 1);
  CHECK(ncclCommRegister(comm, buffer.data(), 100, &a) == ncclSuccess);
  CHECK(a == nullptr);
  ::unsetenv("NCCL_LOCAL_REGISTER");
}

TEST_CASE("windows [case-91]") {
  const bool fake = GENERATE(false, true);
  const ServedBy served(fake ? kFakeNccl : nullptr, false);
  Ranks ranks(2);
  std::vector<char> buffer[2] = {std::vector<char>(10), std::vector<char>(20)};
  ncclWindow_t windows[2];
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclCommWindowRegister(comm, buffer[r].data(), buffer[r].size(), &windows[r], 0);
  }) == ncclSuccess);
  for (int r = 0; r < 2; ++r) {
    CHECK((windows[r] != nullptr) == fake);
    CHECK(ncclCommWindowDeregister(ranks.comms[r], windows[r]) == ncclSuccess);
  }
  ncclComm_t comm = ranks.comms[0];
  CHECK(ncclCommWindowRegister(comm, buffer[0].data(), 0, &windows[0], 0) == ncclInvalidArgument);
  CHECK(ncclCommWindowRegister(comm, nullptr, 1, &windows[0], 0) == ncclInvalidArgument);
  CHECK(ncclCommWindowDeregister(comm, nullptr) == ncclSuccess);
}

/// The head of ncclCommProperties_t and ncclDevCommRequirements_t, and room for what follows.
struct Versioned {
  size_t size;
  unsigned int magic, version;
  int words[12];
};

TEST_CASE("properties go to NCCL as the caller's version has them [case-92]") {
  const ServedBy served("tests/fakes/nccl/23007/libnccl.so.2", false);
  Ranks ranks(2);
  const auto ask = [&](Versioned& v) {
    return ncclCommQueryProperties(ranks.comms[1], reinterpret_cast<ncclCommProperties_t*>(&v));
  };
  Versioned old{40, MSCCLC_NCCL_MAGIC, 22902, {}};
  std::fill(std::begin(old.words), std::end(old.words), -7);
  CHECK(ask(old) == ncclSuccess);
  CHECK(old.words[0] == 1);  // rank
  CHECK(old.words[1] == 2);  // of ranks
  CHECK(std::count(old.words + 6, old.words + 12, -7) == 6);
  Versioned newer{56, MSCCLC_NCCL_MAGIC, 23007, {}};
  CHECK(ask(newer) == ncclSuccess);
  CHECK(std::count(newer.words + 6, newer.words + 12, 1) == 1);
  Versioned wrong{56, MSCCLC_NCCL_MAGIC + 1, 23007, {}};
  CHECK(ask(wrong) == ncclInvalidUsage);
  CHECK(ncclCommQueryProperties(ranks.comms[1], nullptr) == ncclInvalidArgument);
}

TEST_CASE("device communicators go to NCCL, too, at the group's end [case-92]") {
  const ServedBy served("tests/fakes/nccl/23007/libnccl.so.2", false);
  Ranks ranks(2);
  const Versioned asked{64, MSCCLC_NCCL_MAGIC, 23007, {}}, wrong{64, 0, 23007, {}};
  int made[2] = {-1, -1};
  const auto create = [&](const Versioned& v) {
    return ranks.together([&](int r, ncclComm_t comm) {
      const ncclResult_t result =
          ncclDevCommCreate(comm, reinterpret_cast<const ncclDevCommRequirements_t*>(&v),
                            reinterpret_cast<ncclDevComm_t*>(&made[r]));
      CHECK(made[r] == -1);
      return result;
    });
  };
  CHECK(create(wrong) == ncclInvalidUsage);
  CHECK(create(asked) == ncclSuccess);
  CHECK(made[0] == 0);
  CHECK(made[1] == 1);
}

/// As callers of 2.29 and later have it.
struct CallersRequirements {
  struct Resources {
    Resources* next = nullptr;
    size_t bytes = 0, rest[5] = {};
  };
  struct Teams {
    Teams* next = nullptr;
    int ranks = 0, rest[3] = {};
    void* made = nullptr;
  };
  size_t size = sizeof(CallersRequirements);
  unsigned int magic = MSCCLC_NCCL_MAGIC, version = 23007;
  Resources* resources = nullptr;
  Teams* teams = nullptr;
  bool multimem = false;
  int barriers = 0, rest[6] = {};
};

TEST_CASE("what a call for NCCL reads of its caller is read by the call [case-92]") {
  constexpr const char* kNewer = "tests/fakes/nccl/23007/libnccl.so.2";
  const ServedBy served(kNewer, false);
  Ranks ranks(1);
  CallersRequirements::Resources second{nullptr, 4224}, first{&second, 4222};
  CallersRequirements::Teams team{nullptr, 4226};
  CallersRequirements asked;
  asked.resources = &first, asked.teams = &team, asked.barriers = 4228;
  int signals[] = {71, 4230, 0, 0, 72, 4231, 0, 0}, made = -1;
  ncclGroupStart();
  CHECK(ncclDevCommCreate(ranks.comms[0],
                          reinterpret_cast<const ncclDevCommRequirements_t*>(&asked),
                          reinterpret_cast<ncclDevComm_t*>(&made)) == ncclSuccess);
  CHECK(ncclWaitSignal(2, reinterpret_cast<ncclWaitSignalDesc_t*>(signals), ranks.comms[0],
                       nullptr) == ncclSuccess);
  first = {}, second = {}, team = {};
  asked.resources = nullptr, asked.teams = nullptr, asked.barriers = 0;
  std::fill(std::begin(signals), std::end(signals), 0);
  CHECK(ncclGroupEnd() == ncclSuccess);
  for (const char* seen :
       {"bytes 4222", "bytes 4224", "team 4226", "barriers 4228", "4230 71", "4231 72"}) {
    INFO(seen);
    CHECK(calls_of_fake(seen, kNewer) == 1);
  }
}

TEST_CASE("an NCCL without properties says so [case-92]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(1);
  Versioned v{56, MSCCLC_NCCL_MAGIC, 23007, {}};
  CHECK(ncclCommQueryProperties(ranks.comms[0], reinterpret_cast<ncclCommProperties_t*>(&v)) ==
        ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("NCCL 2.28.9 has no such function"));
}

}  // namespace
}  // namespace mscclc::nccl::testing
