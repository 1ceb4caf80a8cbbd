// Ranks as processes, one of which dies: what the other finds, and that it finds it at once, not
// when its waits time out.
#include <unistd.h>

#include <chrono>
#include <string>

#include "runtime/doors/nccl/comm/meet.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/processes.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

using mscclc::testing::Processes;
using mscclc::testing::Signal;

/// Less than MSCCLC_TIMEOUT in these tests: a rank that waits for that has not noticed.
constexpr std::chrono::seconds kPatience{400};
constexpr int kFine = 0, kDied = 9;

/// Rank 0's id, for rank 1. To be made before the processes start.
class SharedId {
 public:
  SharedId() { REQUIRE(::pipe(ends_) == 0); }
  ~SharedId() { ::close(ends_[0]), ::close(ends_[1]); }
  bool make(ncclUniqueId& id) const {
    return ncclGetUniqueId(&id) == ncclSuccess && ::write(ends_[1], &id, sizeof id) == sizeof id;
  }
  bool take(ncclUniqueId& id) const { return ::read(ends_[0], &id, sizeof id) == sizeof id; }

 private:
  int ends_[2];
};

bool last_error_has(const char* text) {
  const std::string found = ncclGetLastError(nullptr);
  if (found.find(text) != found.npos) return true;
  std::fprintf(stderr, "the last error is: %s\n", found.c_str());
  return false;
}

/// What is false becomes the exit code: its line.
#define EXPECT(condition) \
  if (!(condition)) return __LINE__ % 256

/// Rank 0 of two makes a communicator, which rank 1 does not live to see.
int fails_to_make(const SharedId& shared, const char* why) {
  ncclUniqueId id;
  EXPECT(shared.make(id));
  auto comm = reinterpret_cast<ncclComm_t>(1);
  EXPECT(ncclCommInitRank(&comm, 2, id, 0) == ncclRemoteError);
  EXPECT(comm == nullptr);
  EXPECT(last_error_has(why));
  return kFine;
}

/// Dies where all ranks have met, and go on to make the fallback's communicator together.
int dies_once_met(const SharedId& shared) {
  set_plan_calls([](Communicator&, const CollectivesOptions&,
                    Diagnostics&) -> std::unique_ptr<PlanCalls> { ::_exit(kDied); });
  ncclUniqueId id;
  EXPECT(shared.take(id));
  ncclComm_t comm = nullptr;
  EXPECT(ncclCommInitRank(&comm, 2, id, 1) == ncclSuccess);
  return kFine;
}

TEST_CASE("a peer dies while a communicator is made [case-27]") {
  const ServedBy served(kFakeNccl, false);
  const SharedId shared;
  Processes processes;
  processes.start([&] { return fails_to_make(shared, "rank 1"); });
  processes.start([&] { return dies_once_met(shared); });
  CHECK(processes.wait(1, kPatience) == kDied);
  CHECK(processes.wait(0, kPatience) == kFine);
}

/// Makes no calls of plans, but meets as what reads them does.
std::unique_ptr<PlanCalls> meet_for_plans(Communicator& communicator, const CollectivesOptions&,
                                          Diagnostics& diagnostics) {
  std::vector<std::vector<uint8_t>> all;
  (void)communicator.bootstrap().all_gather({}, "the plans", all, diagnostics);
  return nullptr;
}

TEST_CASE("a peer dies while a communicator reads its plans [case-27]") {
  const ServedBy served(nullptr, true);
  const SharedId shared;
  Processes processes;
  processes.start([&] {
    set_plan_calls(meet_for_plans);
    return fails_to_make(shared, "cannot read the plans: error: rank 1");
  });
  processes.start([&] { return dies_once_met(shared); });
  CHECK(processes.wait(1, kPatience) == kDied);
  CHECK(processes.wait(0, kPatience) == kFine);
}

TEST_CASE("a rank whose settings are wrong reports it to the others") {
  const ServedBy served(kFakeNccl, false);
  const SharedId shared;
  Processes processes;
  const std::string name = GENERATE("MSCCLC_NCCL_COMM", "MSCCLC_TIMEOUT");
  processes.start([&] { return fails_to_make(shared, (name + " is 'late'").c_str()); });
  processes.start([&] {
    ::setenv(name.c_str(), "late", 1);
    ncclUniqueId id;
    EXPECT(shared.take(id));
    ncclComm_t comm = nullptr;
    EXPECT(ncclCommInitRank(&comm, 2, id, 1) == ncclInvalidUsage);
    return kFine;
  });
  CHECK(processes.wait(1, kPatience) == kFine);
  CHECK(processes.wait(0, kPatience) == kFine);
}

/// MSCCLC_TIMEOUT of a test in which nothing else shows that a rank does not come.
void set_timeout(int seconds) { ::setenv("MSCCLC_TIMEOUT", std::to_string(seconds).c_str(), 1); }

// Rank 0 hears nothing of a rank that cannot connect; both are to have met what they can by then.
TEST_CASE("a rank that has no descriptors left fails by itself, and reports it if it can") {
  const ServedBy served(kFakeNccl, false);
  const size_t left = GENERATE(0, 1, 2, 3, 4, 5);
  const auto is_right = [&](int factor) {
    set_timeout(3 * factor);
    const SharedId shared;
    Processes processes;
    processes.start([&] { return fails_to_make(shared, "rank 1"); });
    processes.start([&] {
      ncclUniqueId id;
      EXPECT(shared.take(id));
      std::vector<int> taken;
      for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.push_back(fd);
      for (size_t i = 0; i < left; ++i) ::close(taken[i]);
      ncclComm_t comm = nullptr;
      EXPECT(ncclCommInitRank(&comm, 2, id, 1) == ncclSystemError);
      EXPECT(last_error_has("ulimit -n"));
      return kFine;
    });
    const int second = processes.wait(1, kPatience), first = processes.wait(0, kPatience);
    return first == kFine && second == kFine;
  };
  CHECK(mscclc::testing::right_in_longer_times(is_right));
}

TEST_CASE("an id is made with descriptors enough, or a system error says that they lack") {
  const ServedBy served(kFakeNccl, false);
  Processes processes;
  processes.start([] {
    std::vector<int> taken;
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.push_back(fd);
    ncclUniqueId id;
    ncclResult_t made = ncclGetUniqueId(&id);
    EXPECT(made == ncclSystemError);
    for (; made == ncclSystemError; made = ncclGetUniqueId(&id)) {
      EXPECT(last_error_has("ulimit -n"));
      ::close(taken.back());
      taken.pop_back();
    }
    EXPECT(made == ncclSuccess);
    return kFine;
  });
  CHECK(processes.wait(0, kPatience) == kFine);
}

TEST_CASE("a peer dies before the ranks meet [case-27]") {
  const ServedBy served(kFakeNccl, false);
  // No rank has heard of the peer, so only a timeout finds it, once rank 0 itself is there.
  const auto is_right = [](int factor) {
    set_timeout(3 * factor);
    const SharedId shared;
    Processes processes;
    processes.start([&] { return fails_to_make(shared, "rank 1"); });
    return processes.wait(0, kPatience) == kFine;
  };
  CHECK(mscclc::testing::right_in_longer_times(is_right));
}

ncclResult_t all_reduce(ncclComm_t comm) {
  int value = 1;
  const ncclResult_t result = ncclAllReduce(&value, &value, 1, kInt32, kSum, comm, nullptr);
  return result == ncclSuccess && value != 2 ? ncclInternalError : result;
}

/// Rank 0 of two: `fails` is what it does while rank 1 goes, and finds an error in. `called`: its
/// first call, which both make, has ended.
template <class Fails>
int survives(const SharedId& shared, const Signal& called, const Fails& fails) {
  ncclUniqueId id;
  EXPECT(shared.make(id));
  ncclComm_t comm = nullptr;
  EXPECT(ncclCommInitRank(&comm, 2, id, 0) == ncclSuccess);
  EXPECT(all_reduce(comm) == ncclSuccess);
  EXPECT(called.give());
  EXPECT(fails(comm));
  ncclResult_t error = ncclSuccess;
  EXPECT(ncclCommGetAsyncError(comm, &error) == ncclSuccess);
  EXPECT(error == ncclRemoteError);
  EXPECT(last_error_has("rank 1"));
  EXPECT(all_reduce(comm) != ncclSuccess);
  EXPECT(ncclCommAbort(comm) == ncclSuccess);
  return kFine;
}

/// Rank 1 of two: takes part in one call.
int dies(const SharedId& shared, const Signal& called) {
  ncclUniqueId id;
  EXPECT(shared.take(id));
  ncclComm_t comm = nullptr;
  EXPECT(ncclCommInitRank(&comm, 2, id, 1) == ncclSuccess);
  EXPECT(all_reduce(comm) == ncclSuccess);
  EXPECT(called.take());
  ::raise(SIGKILL);
  return kFine;
}

template <class Fails>
void check_killed_peer(const Fails& fails) {
  const ServedBy served(nullptr, true);
  const SharedId shared;
  const Signal called;
  Processes processes;
  processes.start([&] { return survives(shared, called, fails); });
  processes.start([&] { return dies(shared, called); });
  CHECK(processes.wait(1, kPatience) == -SIGKILL);
  CHECK(processes.wait(0, kPatience) == kFine);
}

// The thread sanitizer allows no threads in children of a process with threads; the address
// sanitizer's allocator leaves a child the locks that its parent's threads held.
#if !defined(MSCCLC_TSAN) && !defined(MSCCLC_ASAN)
/// A rank by an id of its parent.
int makes_and_destroys(const ncclUniqueId& id, int rank) {
  ncclComm_t comm = nullptr;
  EXPECT(ncclCommInitRank(&comm, 2, id, rank) == ncclSuccess);
  EXPECT(all_reduce(comm) == ncclSuccess);
  EXPECT(ncclCommDestroy(comm) == ncclSuccess);
  return kFine;
}

// In a process of its own: this one starts no thread.
TEST_CASE("a process makes the id, and its children are the ranks") {
  const ServedBy served(nullptr, true);
  Processes parent;
  parent.start([] {
    ncclUniqueId id;
    EXPECT(ncclGetUniqueId(&id) == ncclSuccess);
    Processes ranks;
    for (int rank = 0; rank < 2; ++rank) ranks.start([&] { return makes_and_destroys(id, rank); });
    EXPECT(ranks.wait(0, kPatience) == kFine);
    EXPECT(ranks.wait(1, kPatience) == kFine);
    return kFine;
  });
  CHECK(parent.wait(0, kPatience) == kFine);
}
#endif

TEST_CASE("a killed peer: a rank that asks for errors finds it [case-84]") {
  check_killed_peer([](ncclComm_t comm) {
    ncclResult_t error = ncclSuccess;
    while (error == ncclSuccess) {
      if (ncclCommGetAsyncError(comm, &error) != ncclSuccess) return false;
      ::usleep(1000);
    }
    return true;
  });
}

TEST_CASE("a killed peer: a call that waits for it ends [case-84]") {
  check_killed_peer([](ncclComm_t comm) { return all_reduce(comm) != ncclSuccess; });
}

TEST_CASE("a killed peer: a first message to it ends [case-84]") {
  check_killed_peer([](ncclComm_t comm) {
    int value = 1;
    return ncclSend(&value, 1, kInt32, 1, comm, nullptr) == ncclRemoteError;
  });
}

}  // namespace
}  // namespace mscclc::nccl::testing

#undef EXPECT
