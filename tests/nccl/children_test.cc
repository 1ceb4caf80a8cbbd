// Children of communicators that callers do not wait for: as NCCL's guide has it, the parent says
// when they are made.
#include "runtime/doors/nccl/comm/comm.h"
#include "runtime/doors/nccl/comm/meet.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

int count_of(ncclComm_t comm) {
  int count = -1;
  return ncclCommCount(comm, &count) == ncclSuccess ? count : -1;
}

void destroy_all(const std::vector<ncclComm_t>& comms) {
  for (ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

/// Each rank's part of a split, with its color.
std::vector<ncclComm_t> split(const UnwaitedRanks& ranks, const std::vector<int>& colors,
                              ncclResult_t result = ncclInProgress) {
  std::vector<ncclComm_t> made(ranks.comms.size());
  for (size_t r = 0; r < made.size(); ++r) {
    CHECK(ncclCommSplit(ranks.comms[r], colors[r], 0, &made[r], nullptr) == result);
  }
  return made;
}

TEST_CASE("the parent says when its children are made, and takes no calls before [case-31]") {
  const ServedBy served(kFakeNccl, false);
  const UnwaitedRanks ranks(2);
  std::vector<ncclComm_t> children;
  {
    const Held making("CommInitRankConfig");
    children = split(ranks, {0, 0});
    for (ncclComm_t parent : ranks.comms) {
      ncclResult_t state = ncclSuccess;
      CHECK(ncclCommGetAsyncError(parent, &state) == ncclSuccess);
      CHECK(state == ncclInProgress);
      int value = 0;
      CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, parent, nullptr) == ncclInvalidArgument);
      CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("is not done yet"));
      CHECK(ncclCommFinalize(parent) == ncclInvalidArgument);
      CHECK(ncclCommDestroy(parent) == ncclInvalidArgument);
      CHECK(ncclCommDeregister(parent, nullptr) == ncclSuccess);
    }
    CHECK(split(ranks, {0, 0}, ncclInvalidArgument) == std::vector<ncclComm_t>(2));
  }
  CHECK(ranks.await_all() == ncclSuccess);
  CHECK(sum_of(children) == 3);
  CHECK(sum_of(ranks.comms) == 3);
  destroy_all(children);
}

TEST_CASE("children of a group that no caller waits for are made before its calls [case-33]") {
  const bool by_plans = GENERATE(false, true), call_first = GENERATE(false, true);
  const ServedBy served(kFakeNccl, by_plans);
  const UnwaitedRanks ranks(2);
  std::vector<ncclComm_t> children(2);
  int values[2] = {1, 2};
  {
    const Held making("CommInitRankConfig");
    for (size_t r = 0; r < 2; ++r) {
      const auto call = [&] {
        return ncclAllReduce(&values[r], &values[r], 1, kInt32, kSum, ranks.comms[r], nullptr);
      };
      ncclGroupStart();
      if (call_first) CHECK(call() == ncclSuccess);
      CHECK(ncclCommSplit(ranks.comms[r], 0, 0, &children[r], nullptr) == ncclSuccess);
      if (!call_first) CHECK(call() == ncclSuccess);
      CHECK(ncclGroupEnd() == ncclInProgress);
      ncclResult_t state = ncclSuccess;
      CHECK(ncclCommGetAsyncError(ranks.comms[r], &state) == ncclSuccess);
      CHECK(state == ncclInProgress);
      CHECK(call() == ncclInvalidArgument);
    }
    CHECK((values[0] == 1 && values[1] == 2));
  }
  CHECK(ranks.await_all() == ncclSuccess);
  CHECK((values[0] == 3 && values[1] == 3));
  CHECK(sum_of(children) == 3);
  CHECK(sum_of(ranks.comms) == 3);
  destroy_all(children);
}

TEST_CASE("one thread makes children and calls of ranks that it does not wait for in one group") {
  const ServedBy served(nullptr, true);
  const UnwaitedRanks ranks(4);
  std::vector<ncclComm_t> children(4);
  for (int round = 0; round < 20; ++round) {
    std::vector<int> values{1, 2, 3, 4};
    ncclGroupStart();
    for (size_t r = 0; r < 4; ++r) {
      CHECK(ncclCommSplit(ranks.comms[r], r % 2, 0, &children[r], nullptr) == ncclSuccess);
      CHECK(ncclAllReduce(&values[r], &values[r], 1, kInt32, kSum, ranks.comms[r], nullptr) ==
            ncclSuccess);
    }
    CHECK(ncclGroupEnd() == ncclInProgress);
    REQUIRE(ranks.await_all() == ncclSuccess);
    CHECK(values == std::vector<int>(4, 10));
    CHECK(sum_of({children[1], children[3]}) == 3);
    destroy_all(children);
  }
}

TEST_CASE("a call that is refused makes no children of its group") {
  const ServedBy served(kFakeNccl, false);
  const UnwaitedRanks ranks(1);
  Ranks waited(1);
  ncclComm_t child = nullptr;
  int value = 1;
  ncclGroupStart();
  CHECK(ncclCommSplit(ranks.comms[0], 0, 0, &child, nullptr) == ncclSuccess);
  for (ncclComm_t comm : {ranks.comms[0], waited.comms[0]}) {
    CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, comm, nullptr) == ncclSuccess);
  }
  CHECK(ncclGroupEnd() == ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("blocking and non-blocking"));
  CHECK(child == nullptr);
  CHECK(sum_of(ranks.comms) == 1);
}

/// A group of a split and a call, of which one comes to nothing.
void begin_child_and_call(ncclComm_t parent, ncclComm_t& child, int& value) {
  ncclGroupStart();
  CHECK(ncclCommSplit(parent, 0, 0, &child, nullptr) == ncclSuccess);
  CHECK(ncclAllReduce(&value, &value, 1, kInt32, kSum, parent, nullptr) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclInProgress);
}

TEST_CASE("calls after children that could not be made are not made") {
  const ServedBy served(kFakeNccl, false);
  UnwaitedRanks ranks(2);
  ncclComm_t child = nullptr;
  int value = 1;
  const long called = calls_of_fake("AllReduce");
  begin_child_and_call(ranks.comms[0], child, value);
  CHECK(ncclCommAbort(ranks.comms[1]) == ncclSuccess);
  CHECK(await(ranks.comms[0]) != ncclSuccess);
  CHECK(await(child) != ncclSuccess);
  CHECK(calls_of_fake("AllReduce") == called);
  for (ncclComm_t comm : {child, ranks.comms[0]}) CHECK(ncclCommAbort(comm) == ncclSuccess);
  ranks.comms.clear();
}

/// A device that no thread can use.
struct Unbound final : mscclc::testing::ForwardingDevice {
  using ForwardingDevice::ForwardingDevice;
  bool bind_thread(Diagnostics& diagnostics) override {
    diagnostics.error("cuda", {}, "the device cannot be bound");
    return false;
  }
};

TEST_CASE("children before calls whose thread cannot use the device end with them") {
  const ServedBy served(nullptr, true);
  const UnwaitedRanks ranks(1);
  const CommPointer comm = find_comm(ranks.comms[0]);
  const std::shared_ptr<Device> device = comm->device;
  comm->device = std::make_shared<Unbound>(device);
  ncclComm_t child = nullptr;
  int value = 1;
  begin_child_and_call(ranks.comms[0], child, value);
  CHECK(await(ranks.comms[0]) != ncclSuccess);
  CHECK(child == nullptr);
  mscclc::testing::await_end_of_threads("mscclc-nccl");
  comm->device = device;
  CHECK(sum_of(ranks.comms) == 1);
}

TEST_CASE("what is asked of a child as soon as its parent says that it is made is under way") {
  const ServedBy served(nullptr, false);
  const ncclUniqueId id = new_id();
  Comm comm;
  comm.ranks = 1;
  comm.async_error = ncclInProgress;
  Stage begun_at = Stage::making;
  const auto meet = [&](Diagnostics& diagnostics) { return meet_by_id(id, comm, diagnostics); };
  const auto made = [&](ncclResult_t) { begun_at = begin_unwaited(comm); };
  REQUIRE(make_comm(comm, meet, made) == ncclSuccess);
  CHECK(comm.async_error == ncclInProgress);
  end_unwaited(comm, begun_at, ncclSuccess);
  CHECK(comm.async_error == ncclSuccess);
}

TEST_CASE("splits in turn never mix their ranks [case-28]") {
  const ServedBy served(nullptr, true);
  const UnwaitedRanks ranks(4);
  for (int round = 0; round < 20; ++round) {
    const auto by_parity = split(ranks, {0, 1, 0, 1});
    REQUIRE(ranks.await_all() == ncclSuccess);
    const auto three = split(ranks, {7, 7, 7, 5});
    REQUIRE(ranks.await_all() == ncclSuccess);
    for (size_t r = 0; r < 4; ++r) {
      CHECK(count_of(by_parity[r]) == 2);
      CHECK(count_of(three[r]) == (r < 3 ? 3 : 1));
    }
    CHECK(sum_of({by_parity[1], by_parity[3]}) == 3);
    CHECK(sum_of({three[0], three[1], three[2]}) == 6);
    destroy_all(by_parity);
    destroy_all(three);
  }
}

TEST_CASE("a rank without a color learns by its parent that the split has ended [case-30]") {
  const ServedBy served(kFakeNccl, false);
  const UnwaitedRanks ranks(3);
  ncclComm_t made[3] = {};
  // It waits for the others, who have not come yet.
  REQUIRE(ncclCommSplit(ranks.comms[1], kNcclSplitNoColor, 0, &made[1], nullptr) == ncclInProgress);
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(ranks.comms[1], &state) == ncclSuccess);
  CHECK(state == ncclInProgress);
  for (const int r : {0, 2}) {
    REQUIRE(ncclCommSplit(ranks.comms[r], 3, 0, &made[r], nullptr) == ncclInProgress);
  }
  CHECK(ranks.await_all() == ncclSuccess);
  CHECK(made[1] == nullptr);
  CHECK(sum_of({made[0], made[2]}) == 3);
  destroy_all({made[0], made[2]});
}

TEST_CASE("splits of one group are made in their order, waited for or not [case-33]") {
  const ServedBy served(nullptr, true);
  const bool waits = GENERATE(false, true);
  const UnwaitedRanks unwaited(waits ? 1 : 4);
  Ranks waited(waits ? 4 : 1);
  const std::vector<ncclComm_t>& parents = waits ? waited.comms : unwaited.comms;
  for (int round = 0; round < 20; ++round) {
    std::vector<ncclComm_t> halves(4), all(4);
    ncclGroupStart();
    for (int r = 0; r < 4; ++r) {
      CHECK(ncclCommSplit(parents[r], r % 2, 0, &halves[r], nullptr) == ncclSuccess);
      CHECK(ncclCommSplit(parents[r], 0, 0, &all[r], nullptr) == ncclSuccess);
    }
    CHECK(ncclGroupEnd() == (waits ? ncclSuccess : ncclInProgress));
    REQUIRE(unwaited.await_all() == ncclSuccess);
    for (int r = 0; r < 4; ++r) {
      CHECK(count_of(halves[r]) == 2);
      CHECK(count_of(all[r]) == 4);
    }
    destroy_all(halves);
    destroy_all(all);
  }
}

TEST_CASE("the parent's configuration says whether its children are waited for [case-31]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(2);
  std::vector<ncclComm_t> children(2);
  on_threads(2, [&](int r) {
    CallersConfig config = unwaited();
    ranks.results[r] = ncclCommSplit(ranks.comms[r], 0, 0, &children[r], config.get());
  });
  CHECK(ranks.results == std::vector<ncclResult_t>(2, ncclSuccess));
  CHECK(sum_of(children) == 3);
  for (ncclComm_t comm : children) {
    CHECK(ncclCommFinalize(comm) == ncclInProgress);
    CHECK(await(comm) == ncclSuccess);
  }
  destroy_all(children);
  mscclc::testing::await_end_of_threads("mscclc-nccl");
}

TEST_CASE("a parent whose child could not be made has the error, and its abort ends the making") {
  const ServedBy served(kFakeNccl, false);
  UnwaitedRanks ranks(2);
  ncclComm_t child = nullptr;
  REQUIRE(ncclCommSplit(ranks.comms[0], 0, 0, &child, nullptr) == ncclInProgress);
  CHECK(ncclCommAbort(ranks.comms[1]) == ncclSuccess);
  CHECK(await(ranks.comms[0]) != ncclSuccess);
  CHECK(await(child) != ncclSuccess);
  for (ncclComm_t comm : {child, ranks.comms[0]}) CHECK(ncclCommAbort(comm) == ncclSuccess);
  ranks.comms.clear();
}

TEST_CASE("on several machines a shrink is refused with a remedy, and ends nothing [case-34]") {
  const ServedBy served(kFakeNccl, false);
  Ranks ranks(2);
  for (ncclComm_t comm : ranks.comms) find_comm(comm)->facts.one_machine = false;
  int lost = 1;
  ncclComm_t made = nullptr;
  for (const int flags : {0, int{kNcclShrinkAbort}}) {
    CHECK(ncclCommShrink(ranks.comms[0], &lost, 1, &made, nullptr, flags) == ncclInvalidUsage);
    CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("ncclCommInitRank()"));
  }
  CHECK(sum_of(ranks.comms) == 3);
  for (ncclComm_t comm : ranks.comms) CHECK(ncclCommRevoke(comm, 0) == ncclSuccess);
  CHECK(ncclCommSplit(ranks.comms[0], 0, 0, &made, nullptr) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("ncclCommInitRank()"));
}

}  // namespace
}  // namespace mscclc::nccl::testing
