// Communicators: ids, every way to make them, their children. No plans: a fake NCCL does the calls.
#include <sys/wait.h>
#include <unistd.h>

#include <climits>

#include "tests/helpers/runtime/named_threads.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

TEST_CASE("ids are 128 bytes at any address [case-10] [case-11]") {
  const ServedBy served(kFakeNccl, false);
  std::vector<char> raw(130, 'x');
  auto* const unaligned = reinterpret_cast<ncclUniqueId*>(raw.data() + 1);
  REQUIRE(ncclGetUniqueId(unaligned) == ncclSuccess);
  ncclUniqueId other;
  REQUIRE(ncclGetUniqueId(&other) == ncclSuccess);
  CHECK(std::memcmp(unaligned, &other, sizeof other) != 0);
  CHECK(raw.front() == 'x');
  CHECK(raw.back() == 'x');
  CHECK(ncclGetUniqueId(nullptr) == ncclInvalidArgument);
  ncclComm_t comm = nullptr;
  CHECK(ncclCommInitRankScalable(&comm, 1, 0, 1, unaligned, nullptr) == ncclSuccess);
  CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("one rank [case-12]") {
  const ServedBy served(nullptr, false);
  Ranks ranks(1);
  int count = -1, rank = -1, device = -1;
  CHECK(ncclCommCount(ranks.comms[0], &count) == ncclSuccess);
  CHECK(ncclCommUserRank(ranks.comms[0], &rank) == ncclSuccess);
  CHECK(ncclCommCuDevice(ranks.comms[0], &device) == ncclSuccess);
  CHECK(count == 1);
  CHECK(rank == 0);
  CHECK(device == 0);
  CHECK(ncclCommCount(ranks.comms[0], nullptr) == ncclInvalidArgument);
  CHECK(ncclCommCount(nullptr, &count) == ncclInvalidArgument);
}

TEST_CASE("an invalid setting is refused") {
  const ServedBy served(kFakeNccl, false);
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ::setenv("MSCCLC_DEVICE", "hots", 1);
  CHECK(ncclCommInitRank(&comm, 1, id, 0) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr),
             Catch::Contains("MSCCLC_DEVICE is 'hots'; allowed is 'gpu' or 'host'"));
  ::setenv("MSCCLC_DEVICE", "host", 1);
  ::setenv("MSCCLC_NCCL_COMM", "late", 1);
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  CHECK(ncclCommInitRank(&comm, 1, id, 0) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr),
             Catch::Contains("MSCCLC_NCCL_COMM is 'late'; allowed is 'init' or 'lazy'"));
  ::unsetenv("MSCCLC_NCCL_COMM");
  for (const char* name : {"MSCCLC_TIMEOUT", "MSCCLC_IB_HCA", "MSCCLC_SOCKET_IFNAME", "MSCCLC_ID",
                           "MSCCLC_IB_QPS", "MSCCLC_CHECK_CALLS"}) {
    INFO(name);
    const char* const before = ::getenv(name);
    const std::string kept = before == nullptr ? "" : before;
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    ::setenv(name, ",", 1);
    CHECK(ncclCommInitRank(&comm, 1, id, 0) == ncclInvalidUsage);
    CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains(name));
    ::setenv(name, kept.c_str(), 1);
  }
  ::setenv("MSCCLC_SILENCE", "0", 1);
  CHECK(ncclGetUniqueId(&id) == ncclInvalidUsage);
  ::unsetenv("MSCCLC_SILENCE");
}

TEST_CASE("ranks as threads [case-14]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(4);
  CHECK(sum_of(ranks.comms) == 10);
}

TEST_CASE("one thread makes all ranks in a group [case-15]") {
  const ServedBy served(kFakeNccl, false);
  const ncclUniqueId id = new_id();
  std::vector<ncclComm_t> comms(3);
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(ncclCommInitRank(&comms[rank], 3, id, rank) == ncclSuccess);
  }
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  CHECK(sum_of(comms) == 6);
  for (ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("all devices of a process [case-16]") {
  const ServedBy served(kFakeNccl, false);
  std::vector<ncclComm_t> comms(3);
  REQUIRE(ncclCommInitAll(comms.data(), 3, nullptr) == ncclSuccess);
  CHECK(sum_of(comms) == 6);
  for (ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  const int list[] = {0, 1}, twice[] = {0, 0};
  REQUIRE(ncclCommInitAll(comms.data(), 2, list) == ncclSuccess);
  for (int i = 0; i < 2; ++i) CHECK(ncclCommDestroy(comms[i]) == ncclSuccess);
  CHECK(ncclCommInitAll(comms.data(), 2, twice) == ncclInvalidUsage);
  CHECK(ncclCommInitAll(comms.data(), -1, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommInitAll(comms.data(), INT_MAX, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommInitAll(nullptr, 1, nullptr) == ncclInvalidArgument);
}

TEST_CASE("rank and number must fit [case-17]") {
  const ServedBy served(kFakeNccl, false);
  const ncclUniqueId id = new_id();
  for (const auto& [ranks, rank] : {std::pair{0, 0}, {-1, 0}, {2, 2}, {2, -1}}) {
    auto comm = reinterpret_cast<ncclComm_t>(1);
    CHECK(ncclCommInitRank(&comm, ranks, id, rank) == ncclInvalidArgument);
    CHECK(comm == nullptr);
  }
  CHECK(ncclCommInitRank(nullptr, 1, id, 0) == ncclInvalidArgument);
}

TEST_CASE("configurations of every size make communicators [case-18] [case-21]") {
  const ServedBy served(kFakeNccl, false);
  for (const auto& [bytes, version] :
       {std::pair{24, 21400}, {48, 21805}, {80, 22809}, {112, 23100}}) {
    const ncclUniqueId id = new_id();
    CallersConfig config(static_cast<size_t>(bytes), static_cast<unsigned>(version));
    ncclComm_t comm = nullptr;
    CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, config.get()) == ncclSuccess);
    CHECK(ncclCommDestroy(comm) == ncclSuccess);
  }
  const ncclUniqueId id = new_id();
  ncclComm_t comm = nullptr;
  CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, nullptr) == ncclSuccess);
  CHECK(ncclCommDestroy(comm) == ncclSuccess);
  CallersConfig wrong(80, 22809);
  wrong.at(8) = 1;
  CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, wrong.get()) == ncclInvalidArgument);
}

TEST_CASE("several ids [case-22]") {
  const ServedBy served(kFakeNccl, false);
  for (const int ids : {1, 2, 3}) {
    std::vector<ncclUniqueId> id(3);
    for (ncclUniqueId& one : id) REQUIRE(ncclGetUniqueId(&one) == ncclSuccess);
    std::vector<ncclComm_t> comms(3);
    ncclGroupStart();
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(ncclCommInitRankScalable(&comms[rank], 3, rank, ids, id.data(), nullptr) ==
            ncclSuccess);
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    CHECK(sum_of(comms) == 6);
    for (ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  }
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  for (const int ids : {0, 4}) {
    CHECK(ncclCommInitRankScalable(&comm, 3, 0, ids, &id, nullptr) == ncclInvalidArgument);
    CHECK_THAT(ncclGetLastError(nullptr),
               Catch::Contains(std::to_string(ids) + " ids for 3 ranks"));
  }
}

/// The bound that plans get of communicators whose configurations say these maxCTAs.
std::vector<uint32_t> bounds_of(const std::vector<int>& most) {
  std::vector<uint32_t> bounds(most.size());
  set_plan_calls([&](Communicator& communicator, const CollectivesOptions& options, Diagnostics&) {
    bounds[communicator.rank()] = options.most_blocks;
    return std::unique_ptr<PlanCalls>();
  });
  const ncclUniqueId id = new_id();
  const int ranks = static_cast<int>(most.size());
  std::vector<ncclComm_t> comms(most.size());
  ncclGroupStart();
  for (int r = 0; r < ranks; ++r) {
    CallersConfig config(40, 21700);
    config.at(28) = most[static_cast<size_t>(r)];
    (void)ncclCommInitRankConfig(&comms[r], ranks, id, r, config.get());
  }
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  for (ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  return bounds;
}

TEST_CASE("maxCTAs and NCCL_MAX_CTAS bound the blocks of plans, on all ranks alike") {
  const ServedBy served(kFakeNccl, false);
  using Bounds = std::vector<uint32_t>;
  CHECK(bounds_of({kNcclUndefinedInt, kNcclUndefinedInt}) == Bounds{0, 0});
  CHECK(bounds_of({8, 4}) == Bounds{4, 4});
  CHECK(bounds_of({kNcclUndefinedInt, 16}) == Bounds{16, 16});
  ::setenv("NCCL_MAX_CTAS", "2", 1);
  CHECK(bounds_of({8, kNcclUndefinedInt}) == Bounds{2, 2});
  for (const char* ignored : {"0", "-1", "many"}) {
    INFO(ignored);
    ::setenv("NCCL_MAX_CTAS", ignored, 1);
    CHECK(bounds_of({8, kNcclUndefinedInt}) == Bounds{8, 8});
  }
  ::unsetenv("NCCL_MAX_CTAS");
}

TEST_CASE("a communicator that is not waited for, and its child [case-23] [case-31]") {
  const ServedBy served(kFakeNccl, false);
  const ncclUniqueId id = new_id();
  CallersConfig config = unwaited();
  std::vector<ncclComm_t> comms(2), children(2);
  REQUIRE(ncclCommInitRankConfig(&comms[0], 2, id, 0, config.get()) == ncclInProgress);
  REQUIRE(comms[0] != nullptr);
  int value = 1, count = 0;
  CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, comms[0], nullptr) == ncclInvalidArgument);
  CHECK(ncclCommCount(comms[0], &count) == ncclInvalidArgument);
  CHECK(ncclCommDestroy(comms[0]) == ncclInvalidArgument);
  REQUIRE(ncclCommInitRankConfig(&comms[1], 2, id, 1, config.get()) == ncclInProgress);
  for (ncclComm_t comm : comms) REQUIRE(await(comm) == ncclSuccess);
  for (int i = 0; i < 2; ++i) {
    CHECK(ncclCommSplit(comms[i], 0, 0, &children[i], nullptr) == ncclInProgress);
  }
  for (ncclComm_t comm : children) REQUIRE(await(comm) == ncclSuccess);
  CHECK(sum_of(children) == 3);
  for (ncclComm_t comm : children) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  for (ncclComm_t comm : comms) {
    CHECK(ncclCommFinalize(comm) == ncclInProgress);
    CHECK(await(comm) == ncclSuccess);
    CHECK(ncclCommDestroy(comm) == ncclSuccess);
  }
  mscclc::testing::await_end_of_threads("mscclc-nccl");  // they use the fake NCCL
}

TEST_CASE("what is finalized without waiting is not destroyed under it [case-81]") {
  const ServedBy served(kFakeNccl, false);
  const ncclUniqueId id = new_id();
  CallersConfig config = unwaited();
  ncclComm_t comm = nullptr;
  REQUIRE(ncclCommInitRankConfig(&comm, 1, id, 0, config.get()) == ncclInProgress);
  REQUIRE(await(comm) == ncclSuccess);
  {
    const Held finalizing("CommFinalize");
    CHECK(ncclCommFinalize(comm) == ncclInProgress);
    CHECK(ncclCommDestroy(comm) == ncclInvalidArgument);
    CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("wait for it, or abort it"));
  }
  CHECK(await(comm) == ncclSuccess);
  CHECK(ncclCommDestroy(comm) == ncclSuccess);
  mscclc::testing::await_end_of_threads("mscclc-nccl");
}

TEST_CASE("blocking and other communicators in one group [case-62]") {
  const ServedBy served(kFakeNccl, false);
  const ncclUniqueId id = new_id();
  CallersConfig config = unwaited();
  std::vector<ncclComm_t> comms(2);
  ncclGroupStart();
  CHECK(ncclCommInitRankConfig(&comms[0], 2, id, 0, config.get()) == ncclSuccess);
  CHECK(ncclCommInitRank(&comms[1], 2, id, 1) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclInvalidArgument);
  CHECK(comms[0] == nullptr);
  CHECK(comms[1] == nullptr);
}

TEST_CASE("abort does not wait for a peer, and ends what waits for it [case-24]") {
  const ServedBy served(kFakeNccl, false);
  const bool has_joined = GENERATE(false, true);
  ::setenv("MSCCLC_TIMEOUT", "0", 1);  // forever
  const ncclUniqueId id = new_id();
  CallersConfig config = unwaited();
  ncclComm_t comm = nullptr;
  REQUIRE(ncclCommInitRankConfig(&comm, 2, id, 0, config.get()) == ncclInProgress);
  while (has_joined && mscclc::testing::threads_named("mscclc-boot") == 0) {
    std::this_thread::yield();
  }
  CHECK(ncclCommAbort(comm) == ncclSuccess);
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(comm, &state) == ncclInvalidArgument);
  // The peer comes after all.
  if (has_joined) mscclc::testing::await_end_of_threads("mscclc-boot");
  CHECK(ncclCommInitRank(&comm, 2, id, 1) == ncclRemoteError);
  mscclc::testing::await_end_of_threads("mscclc-nccl");
}

TEST_CASE("two communicators of the same ranks [case-25] [case-57]") {
  const ServedBy served(kFakeNccl, false);
  Ranks a(2), b(2);
  for (int i = 0; i < 3; ++i) {
    CHECK(sum_of(a.comms) == 3);
    CHECK(sum_of(b.comms) == 3);
  }
  int x[2] = {1, 1}, y[2] = {2, 2};
  ncclGroupStart();
  for (int rank = 0; rank < 2; ++rank) {
    (void)ncclAllReduce(&x[rank], &x[rank], 1, kInt32, kSum, a.comms[rank], nullptr);
    (void)ncclAllReduce(&y[rank], &y[rank], 1, kInt32, kSum, b.comms[rank], nullptr);
  }
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(x[0] == 2);
  CHECK(y[1] == 4);
}

TEST_CASE("an invalid id is an argument's error, at once") {
  const ServedBy served(kFakeNccl, false);
  ncclUniqueId id;
  std::memset(&id, 0x5a, sizeof id);
  auto comm = reinterpret_cast<ncclComm_t>(1);
  CHECK(ncclCommInitRank(&comm, 2, id, 0) == ncclInvalidArgument);
  CHECK(comm == nullptr);
  CHECK_THAT(ncclGetLastError(nullptr),
             Catch::StartsWith("ncclCommInitRank: error: this is not a unique id: "));
  std::memset(&id, 0, sizeof id);
  CallersConfig config(80, 22809);
  config.at(16) = 0;  // even where callers do not wait
  CHECK(ncclCommInitRankConfig(&comm, 2, id, 0, config.get()) == ncclInvalidArgument);
  REQUIRE(ncclGroupStart() == ncclSuccess);
  CHECK(ncclCommInitRankScalable(&comm, 2, 0, 1, &id, nullptr) == ncclInvalidArgument);
  CHECK(ncclGroupEnd() == ncclInvalidArgument);
}

TEST_CASE("an id that is not served is a remote error") {
  const ServedBy served(kFakeNccl, false);
  ncclUniqueId id{};
  std::strcpy(id.internal, "mscclc1/127.0.0.1/1/00000000000000000000000000000000");
  ::setenv("MSCCLC_TIMEOUT", "1", 1);
  ncclComm_t comm = nullptr;
  CHECK(ncclCommInitRank(&comm, 2, id, 0) == ncclRemoteError);
  ::setenv("MSCCLC_TIMEOUT", "120", 1);
}

TEST_CASE("NCCL_COMM_ID says where ranks meet [case-26]") {
  const ServedBy served(kFakeNccl, false);
  ncclUniqueId wrong;
  for (const char* nowhere : {"nowhere", "nowhere:", ":29500", "nowhere:0", "nowhere:65536",
                              "nowhere:-1", "nowhere:29500x", "::1:29500", "[]:29500"}) {
    INFO(nowhere);
    ::setenv("NCCL_COMM_ID", nowhere, 1);
    CHECK(ncclGetUniqueId(&wrong) == ncclInvalidArgument);
    CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("host:port"));
  }
  std::strcpy(wrong.internal, "NCCL_COMM_ID=nowhere");
  ncclComm_t comm = nullptr;
  CHECK(ncclCommInitRank(&comm, 1, wrong, 0) == ncclInvalidArgument);
  const int port = 20000 + ::getpid() % 12000;  // below those that the system gives by itself
  for (const char* host : {"127.0.0.1:", "[::1]:"}) {
    INFO(host);
    ::setenv("NCCL_COMM_ID", (host + std::to_string(port)).c_str(), 1);
    Ranks ranks(2);
    CHECK(sum_of(ranks.comms) == 3);
  }
  ::unsetenv("NCCL_COMM_ID");
}

TEST_CASE("split: halves, keys, no color [case-28] [case-29] [case-30] [case-33]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(4);
  std::vector<ncclComm_t> halves(4);
  REQUIRE(ranks.together([&](int rank, ncclComm_t comm) {
    return ncclCommSplit(comm, rank % 2, rank < 2 ? 5 : 3, &halves[rank], nullptr);
  }) == ncclSuccess);
  for (int rank = 0; rank < 4; ++rank) {
    int count = 0, its = -1;
    CHECK(ncclCommCount(halves[rank], &count) == ncclSuccess);
    CHECK(ncclCommUserRank(halves[rank], &its) == ncclSuccess);
    CHECK(count == 2);
    CHECK(its == (rank < 2 ? 1 : 0));  // by key
  }
  CHECK(sum_of({halves[0], halves[2]}) == 3);
  CHECK(sum_of({halves[1], halves[3]}) == 3);
  for (ncclComm_t comm : halves) CHECK(ncclCommDestroy(comm) == ncclSuccess);

  std::vector<ncclComm_t> some(4);
  on_threads(4, [&](int rank) {
    const int color = rank == 1 ? kNcclSplitNoColor : 7;
    ranks.results[rank] = ncclCommSplit(ranks.comms[rank], color, 0, &some[rank], nullptr);
  });
  CHECK(ranks.results == std::vector<ncclResult_t>(4, ncclSuccess));
  CHECK(some[1] == nullptr);
  int its[4] = {};
  for (const int rank : {0, 2, 3}) CHECK(ncclCommUserRank(some[rank], &its[rank]) == ncclSuccess);
  CHECK(its[0] == 0);
  CHECK(its[2] == 1);
  CHECK(its[3] == 2);
  for (ncclComm_t comm : some) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  ncclComm_t made = nullptr;
  CHECK(ncclCommSplit(ranks.comms[0], -5, 0, &made, nullptr) == ncclInvalidArgument);
}

TEST_CASE("a child outlives its parent [case-32]") {
  const ServedBy served(kFakeNccl, false);
  std::vector<ncclComm_t> children(2);
  {
    Ranks ranks(2);
    REQUIRE(ranks.together([&](int rank, ncclComm_t comm) {
      return ncclCommSplit(comm, 0, -rank, &children[rank], nullptr);
    }) == ncclSuccess);
  }
  CHECK(sum_of(children) == 3);
  for (ncclComm_t comm : children) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("shrink [case-34]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(4);
  std::vector<ncclComm_t> rest(4);
  std::vector<int> lists[4];
  on_threads(4, [&](int rank) {
    lists[rank] = {3, 1};
    if (rank % 2 == 1) return;
    ranks.results[rank] =
        ncclCommShrink(ranks.comms[rank], lists[rank].data(), 2, &rest[rank], nullptr, 0);
  });
  INFO(ncclGetLastError(nullptr));
  CHECK(ranks.results == std::vector<ncclResult_t>(4, ncclSuccess));
  CHECK(lists[0] == std::vector<int>{1, 3});
  for (const int rank : {0, 2}) {  // in the parent's order
    int number = -1;
    CHECK(ncclCommUserRank(rest[rank], &number) == ncclSuccess);
    CHECK(number == rank / 2);
  }
  CHECK(sum_of({rest[0], rest[2]}) == 3);
  for (const int rank : {0, 2}) CHECK(ncclCommDestroy(rest[rank]) == ncclSuccess);
  ncclComm_t made = nullptr;
  int own[] = {0}, outside[] = {4};
  CHECK(ncclCommShrink(ranks.comms[0], own, 1, &made, nullptr, 0) == ncclInvalidArgument);
  CHECK(ncclCommShrink(ranks.comms[0], outside, 1, &made, nullptr, 0) == ncclInvalidArgument);
  CHECK(ncclCommShrink(ranks.comms[0], own, 0, &made, nullptr, 0) == ncclInvalidArgument);
  // More than there are ranks: the list is not read.
  CHECK(ncclCommShrink(ranks.comms[0], own, INT_MAX, &made, nullptr, 0) == ncclInvalidArgument);
  CHECK(ncclCommShrink(ranks.comms[0], nullptr, 1, &made, nullptr, 0) == ncclInvalidArgument);
  int other[] = {1};
  for (const int flags : {2, 77, -1}) {  // with bit 1 among them the communicator was aborted
    CHECK(ncclCommShrink(ranks.comms[0], other, 1, &made, nullptr, flags) == ncclInvalidArgument);
  }
}

TEST_CASE("abort ends a shrink that waits for a rank, by the child or its parent [case-34]") {
  const ServedBy served(kFakeNccl, false);
  const bool by_parent = GENERATE(false, true);
  UnwaitedRanks ranks(3);
  ::setenv("MSCCLC_TIMEOUT", "0", 1);  // forever
  int excluded[] = {2};
  ncclComm_t child = nullptr;
  REQUIRE(ncclCommShrink(ranks.comms[0], excluded, 1, &child, nullptr, 0) == ncclInProgress);
  if (by_parent) {
    CHECK(ncclCommAbort(ranks.comms[0]) == ncclSuccess);
    CHECK(await(child) == ncclInvalidUsage);
  }
  CHECK(ncclCommAbort(child) == ncclSuccess);
  mscclc::testing::await_end_of_threads("mscclc-nccl");
}

TEST_CASE("ranks that were left out of one shrink are in the next [case-34]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(3);
  const auto without = [&](int left_out) {
    std::vector<ncclComm_t> rest(3);
    on_threads(3, [&](int rank) {
      if (rank == left_out) return;
      ranks.results[rank] =
          ncclCommShrink(ranks.comms[rank], &left_out, 1, &rest[rank], nullptr, 0);
    });
    INFO(ncclGetLastError(nullptr));
    CHECK(ranks.results == std::vector<ncclResult_t>(3, ncclSuccess));
    std::erase(rest, nullptr);
    CHECK(sum_of(rest) == 3);
    for (ncclComm_t comm : rest) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  };
  for (const int left_out : {2, 0, 1, 2}) without(left_out);
}

/// Two communicators of two ranks become three, in one group of this thread. Which rank gives the
/// id?
ncclResult_t grow(Ranks& ranks, const ncclUniqueId& id,
                  const std::vector<const ncclUniqueId*>& given, std::vector<ncclComm_t>& grown) {
  ncclGroupStart();
  for (int r = 0; r < 2; ++r) {
    (void)ncclCommGrow(ranks.comms[r], 3, given[r], -1, &grown[r], nullptr);
  }
  (void)ncclCommGrow(nullptr, 3, &id, 2, &grown[2], nullptr);
  return ncclGroupEnd();
}

TEST_CASE("growing ends when the communicator fails [case-36]") {
  const ServedBy served(nullptr, true);
  UnwaitedRanks ranks(2);
  ::setenv("MSCCLC_TIMEOUT", "0", 1);  // forever
  ncclUniqueId id;
  REQUIRE(ncclCommGetUniqueId(ranks.comms[1], &id) == ncclSuccess);
  std::vector<ncclComm_t> grown(2);
  for (int r = 0; r < 2; ++r) {
    REQUIRE(ncclCommGrow(ranks.comms[r], 3, &id, -1, &grown[r], nullptr) == ncclInProgress);
  }
  while (mscclc::testing::threads_named("mscclc-boot") < 4) std::this_thread::yield();
  const ncclResult_t revoked = ncclCommRevoke(ranks.comms[1], 0);
  CHECK((revoked == ncclInProgress || revoked == ncclSuccess));  // what it ends may be over
  CHECK(await(ranks.comms[1]) == ncclSuccess);
  for (ncclComm_t comm : grown) {
    CHECK(await(comm) == ncclRemoteError);
    CHECK(ncclCommAbort(comm) == ncclSuccess);
  }
  mscclc::testing::await_end_of_threads("mscclc-nccl");
}

TEST_CASE("a communicator grows by a rank [case-36]") {
  const bool plans = GENERATE(false, true);
  const ServedBy served(plans ? nullptr : kFakeNccl, plans);
  Ranks ranks(2);
  ncclUniqueId id;
  REQUIRE(ncclCommGetUniqueId(ranks.comms[1], &id) == ncclSuccess);
  std::vector<ncclComm_t> grown(3);
  REQUIRE(grow(ranks, id, {nullptr, &id}, grown) == ncclSuccess);
  for (int r = 0; r < 3; ++r) {
    int its = -1, count = 0;
    CHECK(ncclCommUserRank(grown[r], &its) == ncclSuccess);
    CHECK(ncclCommCount(grown[r], &count) == ncclSuccess);
    CHECK(its == r);
    CHECK(count == 3);
  }
  CHECK(sum_of(grown) == 6);
  CHECK(sum_of(ranks.comms) == 3);  // the old one stays
  ncclGroupStart();
  for (ncclComm_t comm : grown) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
}

// NCCL's guide does it so: the id is only given to the new ranks.
TEST_CASE("a communicator keeps the id by which it grows, for once [case-36]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(2);
  for (int round = 0; round < 2; ++round) {
    ncclUniqueId id;
    REQUIRE(ncclCommGetUniqueId(ranks.comms[0], &id) == ncclSuccess);
    std::vector<ncclComm_t> grown(3);
    REQUIRE(grow(ranks, id, {nullptr, nullptr}, grown) == ncclSuccess);
    CHECK(sum_of(grown) == 6);
    for (ncclComm_t comm : grown) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  }
  std::vector<ncclComm_t> grown(2);
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    return ncclCommGrow(comm, 3, nullptr, -1, &grown[r], nullptr);
  }) == ncclInvalidArgument);
}

TEST_CASE("a kept id of a growth that never came gives way to the one that a rank gives") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(2);
  ncclUniqueId kept, id;
  REQUIRE(ncclCommGetUniqueId(ranks.comms[0], &kept) == ncclSuccess);
  REQUIRE(ncclCommGetUniqueId(ranks.comms[1], &id) == ncclSuccess);
  std::vector<ncclComm_t> grown(3);
  REQUIRE(grow(ranks, id, {nullptr, &id}, grown) == ncclSuccess);
  CHECK(sum_of(grown) == 6);
  for (ncclComm_t comm : grown) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  // It has gone with that.
  grown.assign(2, nullptr);
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    return ncclCommGrow(comm, 3, nullptr, -1, &grown[r], nullptr);
  }) == ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("no rank gives"));
}

TEST_CASE("growing that is refused [case-36]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(2);
  ncclUniqueId id;
  ncclComm_t comm = ranks.comms[0], made = nullptr;
  CHECK(ncclCommGetUniqueId(nullptr, &id) == ncclInvalidArgument);
  CHECK(ncclCommGetUniqueId(comm, nullptr) == ncclInvalidArgument);
  // Without any ncclCommGetUniqueId().
  std::vector<ncclComm_t> grown(2);
  CHECK(ranks.together([&](int r, ncclComm_t one) {
    return ncclCommGrow(one, 3, nullptr, -1, &grown[r], nullptr);
  }) == ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("no rank gives"));
  REQUIRE(ncclCommGetUniqueId(comm, &id) == ncclSuccess);
  CHECK(ncclCommGrow(comm, 3, &id, -1, nullptr, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommGrow(comm, 2, &id, -1, &made, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommGrow(comm, 3, &id, 0, &made, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommGrow(nullptr, 3, nullptr, 2, &made, nullptr) == ncclInvalidArgument);
  CHECK(ncclCommGrow(nullptr, 3, &id, 3, &made, nullptr) == ncclInvalidArgument);
  CHECK(made == nullptr);
  std::memset(&id, 0x5a, sizeof id);
  CHECK(ncclCommGrow(nullptr, 3, &id, 2, &made, nullptr) == ncclInvalidArgument);
  CHECK(ranks.together([&](int r, ncclComm_t one) {
    return ncclCommGrow(one, 3, r == 0 ? &id : nullptr, -1, &grown[r], nullptr);
  }) == ncclInvalidArgument);
  CHECK(grown == std::vector<ncclComm_t>(2));
  CHECK(sum_of(ranks.comms) == 3);
}

}  // namespace
}  // namespace mscclc::nccl::testing
