// For tests: ranks of this process on the host device, with or without plans, and with or without a
// fake NCCL to fall back to.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ir/diagnostics/first_message.h"
#include "runtime/doors/nccl/abi/api.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/comm/make.h"
#include "tests/helpers/runtime/named_threads.h"

namespace mscclc::nccl::testing {

constexpr int kInt32 = 2, kFloat = 7, kDouble = 8, kSum = 0;
constexpr const char* kFakeNccl = "tests/fakes/nccl/22809/libnccl.so.2";

/// A variable, until it ends.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* const name_;
};

/// What serves calls while it lives.
class ServedBy {
 public:
  /// `fake`: a path; nullptr: no NCCL. `plans`: whether the library's plans are there.
  ServedBy(const char* fake, bool plans) {
    ::setenv("MSCCLC_DEVICE", "host", 1);
    ::setenv("MSCCLC_TIMEOUT", "600", 1);
    if (fake == nullptr) {
      replace_real_nccl(nullptr, "a test has no NCCL");
    } else {
      auto real = load_real(absolute(fake));
      REQUIRE(real);
      replace_real_nccl(*std::move(real), "");
    }
    if (!plans) set_plan_calls({});
  }
  ~ServedBy() {
    replace_real_nccl(nullptr, "the test is over");
    use_library_plans();
  }
  static std::string absolute(const char* path) {
    char* const folder = ::getcwd(nullptr, 0);
    std::string made = std::string(folder) + "/" + path;
    std::free(folder);
    return made;
  }
};

/// A function by which tests speak to a fake NCCL that is loaded.
template <typename Function>
Function* function_of_fake(const char* name, const char* library) {
  void* const handle = ::dlopen(ServedBy::absolute(library).c_str(), RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(handle != nullptr);
  auto* const function = reinterpret_cast<Function*>(::dlsym(handle, name));
  REQUIRE(function != nullptr);
  return function;
}

/// How often the function of a fake NCCL was called in this process.
inline long calls_of_fake(const char* name, const char* library = kFakeNccl) {
  return function_of_fake<long(const char*)>("fakeNcclCalls", library)(name);
}

/// While it lives, calls of a function of the fake NCCL wait.
class Held {
 public:
  explicit Held(const char* name) : name_(name) { hold(true); }
  ~Held() { hold(false); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  void hold(bool held) {
    function_of_fake<void(const char*, bool)>("fakeNcclHold", kFakeNccl)(name_, held);
  }
  const char* const name_;
};

inline ncclUniqueId new_id() {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  return id;
}

/// Runs fn(rank) on a thread for each rank; the results must be asked after it.
inline void on_threads(int ranks, const std::function<void(int rank)>& fn) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(fn, rank);
  for (std::thread& thread : threads) thread.join();
}

/// Communicators of all ranks, made on threads, and destroyed in a group.
class Ranks {
 public:
  explicit Ranks(int ranks) : comms(ranks), results(ranks) {
    const ncclUniqueId id = new_id();
    on_threads(ranks,
               [&](int rank) { results[rank] = ncclCommInitRank(&comms[rank], ranks, id, rank); });
    INFO(ncclGetLastError(nullptr));
    REQUIRE(results == std::vector<ncclResult_t>(ranks, ncclSuccess));
  }
  ~Ranks() {
    ncclGroupStart();
    for (ncclComm_t comm : comms) ncclCommDestroy(comm);
    ncclGroupEnd();
  }
  int size() const { return static_cast<int>(comms.size()); }
  /// Calls fn(rank, communicator) for all ranks in one group of this thread. The group's result.
  ncclResult_t together(const std::function<ncclResult_t(int rank, ncclComm_t comm)>& fn) {
    ncclGroupStart();
    for (int rank = 0; rank < size(); ++rank) (void)fn(rank, comms[rank]);
    return ncclGroupEnd();
  }

  std::vector<ncclComm_t> comms;
  std::vector<ncclResult_t> results;
};

/// Why this rank's communicator has failed; empty: it has not. ncclGetLastError() is what any rank
/// of the process has said last.
inline std::string said_of_failure(ncclComm_t comm) {
  Diagnostics diagnostics;
  return find_comm(comm)->communicator->check(diagnostics) ? "" : first_message(diagnostics);
}

/// ncclConfig_t as callers of some version have it.
struct CallersConfig {
  CallersConfig(size_t size, unsigned version) {
    for (int& word : words) word = kNcclUndefinedInt;
    const unsigned magic = MSCCLC_NCCL_MAGIC;
    std::memcpy(words, &size, sizeof size);
    std::memcpy(words + 2, &magic, sizeof magic);
    std::memcpy(words + 3, &version, sizeof version);
    const char* const none = nullptr;
    std::memcpy(words + 8, &none, sizeof none);   // netName
    std::memcpy(words + 12, &none, sizeof none);  // commName
  }
  int& at(size_t offset) { return words[offset / 4]; }
  ncclConfig_t* get() { return reinterpret_cast<ncclConfig_t*>(words); }
  alignas(8) int words[40];
};

/// The configuration of a communicator that is not waited for.
inline CallersConfig unwaited() {
  CallersConfig config(80, 22809);
  config.at(16) = 0;
  return config;
}

/// What a communicator says once it is not ncclInProgress any more.
inline ncclResult_t await(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) return ncclInternalError;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return state;
}

/// Waits until a call that is under way has come so far. False: it has ended without that.
template <class SoFar, class HasEnded>
bool comes_so_far(SoFar so_far, HasEnded has_ended) {
  while (!so_far()) {
    if (has_ended()) return so_far();
    std::this_thread::yield();
  }
  return true;
}

/// Of what callers do not wait for: true as soon as nothing is under way at one of them.
inline bool one_has_ended(const std::vector<ncclComm_t>& comms) {
  return std::any_of(comms.begin(), comms.end(), [](ncclComm_t comm) {
    ncclResult_t state = ncclSuccess;
    return ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclInProgress;
  });
}

/// A call on a thread of its own.
class OwnThread {
 public:
  explicit OwnThread(std::function<ncclResult_t()> call)
      : thread_([this, call = std::move(call)] {
          result_ = call();
          ended_ = true;
        }) {}
  ~OwnThread() { (void)result(); }

  /// comes_so_far() of its call.
  template <class SoFar>
  bool comes(SoFar so_far) const {
    return comes_so_far(so_far, [this] { return ended_.load(); });
  }
  /// Waits for its end.
  ncclResult_t result() {
    if (thread_.joinable()) thread_.join();
    return result_;
  }

 private:
  ncclResult_t result_ = ncclInProgress;
  std::atomic<bool> ended_ = false;
  std::thread thread_;  ///< last: it uses the others
};

/// Communicators that callers do not wait for, nor for their children.
class UnwaitedRanks {
 public:
  explicit UnwaitedRanks(int ranks) : comms(ranks) {
    const ncclUniqueId id = new_id();
    CallersConfig config = unwaited();
    for (int rank = 0; rank < ranks; ++rank) {
      REQUIRE(ncclCommInitRankConfig(&comms[rank], ranks, id, rank, config.get()) ==
              ncclInProgress);
    }
    REQUIRE(await_all() == ncclSuccess);
  }
  ~UnwaitedRanks() {
    ncclGroupStart();
    for (ncclComm_t comm : comms) ncclCommDestroy(comm);
    ncclGroupEnd();
    mscclc::testing::await_end_of_threads("mscclc-nccl");  // they use the fake NCCL
  }
  ncclResult_t await_all() const {
    ncclResult_t last = ncclSuccess;
    for (ncclComm_t comm : comms) {
      if (const ncclResult_t state = await(comm); state != ncclSuccess) last = state;
    }
    return last;
  }

  std::vector<ncclComm_t> comms;
};

/// The sum over all ranks of 1 + rank, by one allreduce of a group; -1: an error.
inline int sum_of(const std::vector<ncclComm_t>& comms) {
  std::vector<int> values(comms.size());
  ncclGroupStart();
  for (size_t i = 0; i < comms.size(); ++i) {
    int rank = 0;
    if (ncclCommUserRank(comms[i], &rank) != ncclSuccess) return -1;
    values[i] = 1 + rank;
    (void)ncclAllReduce(&values[i], &values[i], 1, kInt32, kSum, comms[i], nullptr);
  }
  ncclResult_t ended = ncclGroupEnd();
  for (size_t i = 0; i < comms.size() && ended == ncclInProgress; ++i) {
    const ncclResult_t state = await(comms[i]);
    if (state != ncclSuccess || i + 1 == comms.size()) ended = state;
  }
  if (ended != ncclSuccess) return -1;
  const bool equal = std::equal(values.begin() + 1, values.end(), values.begin());
  return equal ? values[0] : -1;
}

/// ncclCollConfig_t of 2.32, with nothing set.
struct CallersCallConfig {
  size_t size = 72;
  unsigned magic = MSCCLC_NCCL_MAGIC, version = 23203;
  void* ext = nullptr;
  int min_ctas = kNcclUndefinedInt, max_ctas = kNcclUndefinedInt, nvls_ctas = kNcclUndefinedInt,
      cluster = kNcclUndefinedInt;
  const char* algorithms = nullptr;
  int force = 1, policy = kNcclUndefinedInt;
  uint64_t tag = 0;
  void* event = nullptr;
  const ncclCollConfig_t* get() const { return reinterpret_cast<const ncclCollConfig_t*>(this); }
};
static_assert(sizeof(CallersCallConfig) == 72);

}  // namespace mscclc::nccl::testing
