// A fake of NVIDIA's NCCL, for tests: communicators among the threads of one process, calls that
// are done in host memory by the time that a group ends, and a count of the calls of each function.
// Versions differ in what they export (exports of the target) and in fake_nccl_version.
//
// Each rank posts its calls on the board of its clique; the one that posts the last part of a call
// moves the data for all. So one thread may drive several ranks in a group, as with NCCL.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/doors/nccl/abi/api.h"
#include "tests/fakes/nccl/rounds.h"

extern "C" const int fake_nccl_version;

/// How often a function was called, by its name without nccl.
extern "C" __attribute__((visibility("default"))) long fakeNcclCalls(const char* name);
/// From now on calls of this function wait, or no more.
extern "C" __attribute__((visibility("default"))) void fakeNcclHold(const char* name, bool held);

namespace {

using fake_nccl::bytes_of;
using fake_nccl::finish;
using fake_nccl::Kind;
using fake_nccl::load;
using fake_nccl::Part;
using fake_nccl::Round;

struct Counts {
  std::mutex mutex;
  std::map<std::string, long> calls;
  std::set<std::string> held;
  std::condition_variable released;
};
Counts& counts() {
  static Counts* const counts = new Counts;
  return *counts;
}
void note_call(const std::string& name) {
  std::unique_lock lock(counts().mutex);
  ++counts().calls[name];
  counts().released.wait(lock, [&] { return !counts().held.contains(name); });
}

/// Half of a message.
struct Message {
  const void* data;
  void* place;
  size_t bytes;
  std::shared_ptr<bool> moved = std::make_shared<bool>(false);  ///< the other half has come
};
/// The ranks that have one id.
struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  int ranks = 0, joined = 0;
  bool aborted = false;
  std::map<size_t, Round> rounds;
  /// Sends and receives that wait for their other half, by (from, to).
  std::map<std::pair<int, int>, std::vector<Message>> sends, receives;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  size_t calls = 0;
  std::map<int, double> scales;  ///< of reductions that were made here
  /// Its making or its end never ends: FAKE_NCCL_STUCK, FAKE_NCCL_UNFINALIZED.
  std::atomic<bool> stuck{false};
  std::atomic<int> in_progress{0};  ///< so often it says so: FAKE_NCCL_IN_PROGRESS
};

namespace {

struct Ids {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Clique>> cliques;
  long next = 0;
};
Ids& ids() {
  static Ids* const ids = new Ids;
  return *ids;
}

/// What the thread's group has posted, and waits for at its end.
struct Waited {
  std::shared_ptr<Clique> clique;
  size_t round;
};
// Aligned, as LeakSanitizer takes a library's block of these for one of an older glibc where it
// lies 16 bytes after the start of a page, reads its bounds from what is before it, and crashes
// (compiler-rt 16, sanitizer_tls_get_addr.cpp, Glibc_2_19_tls_header).
alignas(64) thread_local int depth = 0;
thread_local std::vector<std::function<void()>> asked;  ///< in the group
thread_local std::vector<ncclComm_t> posted_by;         ///< of what is asked for
thread_local std::vector<Waited> waited;
thread_local std::vector<std::pair<std::shared_ptr<Clique>, std::shared_ptr<bool>>> waited_messages;

/// What ends a group that is open, or what was asked for outside of one.
ncclResult_t post_all() {
  for (const auto& post : std::exchange(asked, {})) post();
  bool aborted = false;
  for (const Waited& w : waited) {
    std::unique_lock lock(w.clique->mutex);
    w.clique->changed.wait(lock,
                           [&] { return w.clique->aborted || w.clique->rounds[w.round].done; });
    aborted |= w.clique->aborted;
  }
  // Not for all of the clique: a peer that is faster may wait already for the message after it.
  for (const auto& [clique, moved] : waited_messages) {
    std::unique_lock lock(clique->mutex);
    clique->changed.wait(lock, [c = clique.get(), m = moved.get()] { return c->aborted || *m; });
    aborted |= clique->aborted;
  }
  waited.clear();
  waited_messages.clear();
  posted_by.clear();
  return aborted ? ncclRemoteError : ncclSuccess;
}

ncclResult_t post(ncclComm_t comm, Part part) {
  const auto scale = comm->scales.find(part.op);
  part.scale = scale == comm->scales.end() ? 1.0 : scale->second;
  if (scale != comm->scales.end()) part.op = 0;
  Clique& clique = *comm->clique;
  posted_by.push_back(comm);
  asked.push_back([comm, &clique, part] {
    const size_t number = comm->calls++;
    const std::lock_guard lock(clique.mutex);
    Round& round = clique.rounds[number];
    round.parts[comm->rank] = part;
    // Once it is aborted, the memory of ranks that waited may be gone.
    const bool whole = static_cast<int>(round.parts.size()) == clique.ranks;
    if (whole && !clique.aborted) finish(round);
    clique.changed.notify_all();
    waited.push_back({comm->clique, number});
  });
  return depth > 0 ? ncclSuccess : post_all();
}

/// Half of a message: the other half may be there already.
ncclResult_t post_message(ncclComm_t comm, int from, int to, Message own, bool sends) {
  posted_by.push_back(comm);
  asked.push_back([comm, from, to, own, sends] {
    Clique& clique = *comm->clique;
    const std::lock_guard lock(clique.mutex);
    auto& others = sends ? clique.receives : clique.sends;
    const auto other = others.find({from, to});
    if (other == others.end()) {
      (sends ? clique.sends : clique.receives)[{from, to}].push_back(own);
    } else {
      const Message half = other->second.front();
      other->second.erase(other->second.begin());
      if (other->second.empty()) others.erase(other);
      if (own.bytes > 0) {
        std::memcpy(sends ? half.place : own.place, sends ? own.data : half.data, own.bytes);
      }
      *own.moved = *half.moved = true;
    }
    clique.changed.notify_all();
    waited_messages.emplace_back(comm->clique, own.moved);
  });
  return depth > 0 ? ncclSuccess : post_all();
}

}  // namespace

void fakeNcclHold(const char* name, bool held) {
  const std::lock_guard lock(counts().mutex);
  if (held) counts().held.insert(name);
  if (!held) counts().held.erase(name);
  counts().released.notify_all();
}

long fakeNcclCalls(const char* name) {
  const std::lock_guard lock(counts().mutex);
  const auto found = counts().calls.find(name);
  return found == counts().calls.end() ? 0 : found->second;
}

/// Answers of functions that no test looks at: success, or nothing.
namespace quiet {
#define API(since, how, result, name, parameters, arguments) \
  result name parameters { return std::type_identity_t<result>(); }
#include "runtime/doors/nccl/abi/api.def"
#undef API
}  // namespace quiet

/// A name that is not declared here is found there.
namespace fake {
using namespace quiet;

ncclResult_t GetVersion(int* version) { return *version = fake_nccl_version, ncclSuccess; }

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(ids().mutex);
  std::memset(id, 0, sizeof *id);
  const std::string text = "fake " + std::to_string(ids().next++);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

const char* GetErrorString(ncclResult_t) { return "a fake error"; }

/// FAKE_NCCL_UNMADE: the rank that gets none.
ncclResult_t CommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  const char* const unmade = std::getenv("FAKE_NCCL_UNMADE");
  if (unmade != nullptr && std::atoi(unmade) == rank) return ncclSystemError;
  std::shared_ptr<Clique> clique;
  {
    const std::lock_guard lock(ids().mutex);
    std::shared_ptr<Clique>& there = ids().cliques[id.internal];
    if (there == nullptr) there = std::make_shared<Clique>();
    clique = there;
  }
  const std::lock_guard lock(clique->mutex);
  clique->ranks = ranks;
  *comm = new ncclComm;
  (*comm)->clique = clique;
  (*comm)->rank = rank;
  (*comm)->stuck = std::getenv("FAKE_NCCL_STUCK") != nullptr;
  return (*comm)->stuck ? ncclInProgress : ncclSuccess;
}

ncclResult_t CommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                ncclConfig_t*) {
  return CommInitRank(comm, ranks, id, rank);
}

ncclResult_t CommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const bool busy = comm->stuck || std::getenv("FAKE_NCCL_BUSY") != nullptr;
  const bool in_progress = comm->in_progress > 0 && comm->in_progress-- > 0;
  return *error = busy || in_progress ? ncclInProgress : ncclSuccess, ncclSuccess;
}

ncclResult_t CommCount(ncclComm_t comm, int* count) {
  const std::lock_guard lock(comm->clique->mutex);
  return *count = comm->clique->ranks, ncclSuccess;
}

ncclResult_t CommFinalize(ncclComm_t comm) {
  comm->stuck = std::getenv("FAKE_NCCL_UNFINALIZED") != nullptr;
  return comm->stuck ? ncclInProgress : ncclSuccess;
}

ncclResult_t CommDestroy(ncclComm_t comm) {
  // By name, as NCCL does it: that must not find a library that was loaded before it.
  void* memory = nullptr;
  if (ncclMemAlloc(&memory, 16) != ncclSuccess || ncclMemFree(memory) != ncclSuccess) {
    return ncclInternalError;
  }
  delete comm;
  return ncclSuccess;
}

// Another thread may still be in a call, so what is aborted stays to the process's end.
ncclResult_t CommAbort(ncclComm_t comm) {
  static std::mutex mutex;
  static auto* const aborted = new std::vector<ncclComm_t>;
  {
    const std::lock_guard lock(mutex);
    aborted->push_back(comm);
  }
  const std::lock_guard lock(comm->clique->mutex);
  comm->clique->aborted = true;
  comm->clique->changed.notify_all();
  return ncclSuccess;
}

/// The same, of a communicator that is destroyed later.
ncclResult_t CommRevoke(ncclComm_t comm, int) {
  const std::lock_guard lock(comm->clique->mutex);
  comm->clique->aborted = true;
  comm->clique->changed.notify_all();
  return ncclSuccess;
}

ncclResult_t GroupStart() { return ++depth, ncclSuccess; }
/// FAKE_NCCL_IN_PROGRESS: how often each communicator of a group says that it is, after the end.
ncclResult_t GroupEnd() {
  if (--depth > 0) return ncclSuccess;
  const std::vector<ncclComm_t> comms = posted_by;
  const ncclResult_t result = post_all();
  const char* const times = std::getenv("FAKE_NCCL_IN_PROGRESS");
  if (times == nullptr || comms.empty() || result != ncclSuccess) return result;
  for (ncclComm_t comm : comms) comm->in_progress = std::atoi(times);
  return ncclInProgress;
}
ncclResult_t GroupSimulateEnd(ncclSimInfo_t* info) {
  if (--depth > 0) return ncclSuccess;
  info->estimatedTime = 1.5f * static_cast<float>(std::exchange(asked, {}).size());
  return ncclSuccess;
}

#define SEND static_cast<const char*>(send)
#define RECEIVE static_cast<char*>(receive)
#define PLAIN const void *send, void *receive, size_t count, ncclDataType_t type
#define END ncclComm_t comm, cudaStream_t
ncclResult_t AllReduce(PLAIN, ncclRedOp_t op, END) {
  return post(comm, {Kind::allreduce, SEND, RECEIVE, count, type, op, 0, 1});
}
ncclResult_t Broadcast(PLAIN, int root, END) {
  return post(comm, {Kind::broadcast, SEND, RECEIVE, count, type, 0, root, 1});
}
ncclResult_t Reduce(PLAIN, ncclRedOp_t op, int root, END) {
  return post(comm, {Kind::reduce, SEND, RECEIVE, count, type, op, root, 1});
}
ncclResult_t AllGather(PLAIN, END) {
  return post(comm, {Kind::allgather, SEND, RECEIVE, count, type, 0, 0, 1});
}
ncclResult_t ReduceScatter(PLAIN, ncclRedOp_t op, END) {
  return post(comm, {Kind::reducescatter, SEND, RECEIVE, count, type, op, 0, 1});
}
ncclResult_t AlltoAll(PLAIN, END) {
  return post(comm, {Kind::alltoall, SEND, RECEIVE, count, type, 0, 0, 1});
}
ncclResult_t Gather(PLAIN, int root, END) {
  return post(comm, {Kind::gather, SEND, RECEIVE, count, type, 0, root, 1});
}
ncclResult_t Scatter(PLAIN, int root, END) {
  return post(comm, {Kind::scatter, SEND, RECEIVE, count, type, 0, root, 1});
}
ncclResult_t Send(const void* send, size_t count, ncclDataType_t type, int peer, END) {
  return post_message(comm, comm->rank, peer, {send, nullptr, count * bytes_of(type)}, true);
}
ncclResult_t Recv(void* receive, size_t count, ncclDataType_t type, int peer, END) {
  return post_message(comm, peer, comm->rank, {nullptr, receive, count * bytes_of(type)}, false);
}

ncclResult_t RedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                  ncclScalarResidence_t, ncclComm_t comm) {
  static std::atomic<int> next{1000};
  *op = next++;
  comm->scales[*op] = load(type, static_cast<const char*>(scalar));
  return ncclSuccess;
}
ncclResult_t RedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return comm->scales.erase(op) == 1 ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t MemAlloc(void** address, size_t bytes) {
  *address = std::malloc(std::max<size_t>(bytes, 1));
  return *address == nullptr ? ncclSystemError : ncclSuccess;
}
ncclResult_t MemFree(void* address) {
  std::free(address);
  return ncclSuccess;
}
ncclResult_t CommRegister(const ncclComm_t, void* buffer, size_t, void** handle) {
  return *handle = buffer, ncclSuccess;
}
/// FAKE_NCCL_WINDOWLESS: the rank that gets none.
ncclResult_t CommWindowRegister(ncclComm_t comm, void* buffer, size_t, ncclWindow_t* window, int) {
  const char* const windowless = std::getenv("FAKE_NCCL_WINDOWLESS");
  if (windowless != nullptr && std::atoi(windowless) == comm->rank) buffer = nullptr;
  return *window = static_cast<ncclWindow_t>(buffer), ncclSuccess;
}

/// The structs of 2.29 and later begin alike; older callers' end earlier, and get less.
struct Versioned {
  size_t size;
  unsigned int magic, version;
};
struct Properties {
  Versioned head;
  int rank, ranks, device, nvml_device;
  bool device_api, multimem;
  uint8_t gin, reserved[5];
  int lsa_teams;  ///< of callers from 2.29.4 on
};
ncclResult_t CommQueryProperties(ncclComm_t comm, ncclCommProperties_t* properties) {
  auto* const out = reinterpret_cast<Properties*>(properties);
  if (out == nullptr) return ncclInvalidArgument;
  if (out->head.magic != MSCCLC_NCCL_MAGIC) return ncclInvalidUsage;
  out->rank = comm->rank;
  out->ranks = comm->clique->ranks;
  if (out->head.version >= 22904) out->lsa_teams = 1;
  return ncclSuccess;
}
struct Resources {
  Resources* next;
  size_t bytes, rest[5];
};
struct Teams {
  Teams* next;
  int ranks, rest[3];
  void* made;
};
struct Requirements {
  Versioned head;
  const Resources* resources;
  const Teams* teams;
  bool multimem;
  int barriers;
};
/// Counts what is asked for, too.
void note_requirements(const Requirements& asked) {
  note_call("barriers " + std::to_string(asked.barriers));
  for (const auto* one = asked.resources; one != nullptr; one = one->next) {
    note_call("bytes " + std::to_string(one->bytes));
  }
  for (const auto* one = asked.teams; one != nullptr; one = one->next) {
    note_call("team " + std::to_string(one->ranks));
  }
}
/// Before 2.29 requirements have no head that says what they hold.
ncclResult_t DevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t* requirements,
                           ncclDevComm_t* made) {
  const auto* const head = reinterpret_cast<const Versioned*>(requirements);
  if (fake_nccl_version >= 22900) {
    if (head->magic != MSCCLC_NCCL_MAGIC) return ncclInvalidUsage;
    note_requirements(*reinterpret_cast<const Requirements*>(requirements));
  }
  std::memcpy(made, &comm->rank, sizeof comm->rank);
  return ncclSuccess;
}
/// Counts what is waited for, too: of each signal "PEER COUNT".
ncclResult_t WaitSignal(int count, ncclWaitSignalDesc_t* descriptors, ncclComm_t, cudaStream_t) {
  struct Signal {
    int count, peer, number, context;
  };
  const auto* const first = reinterpret_cast<const Signal*>(descriptors);
  for (const Signal* signal = first; signal != first + count; ++signal) {
    note_call(std::to_string(signal->peer) + " " + std::to_string(signal->count));
  }
  return ncclSuccess;
}
ncclTeam_t TeamWorld(ncclComm_t comm) { return {comm->clique->ranks, comm->rank, 1}; }

}  // namespace fake

#define API(since, how, result, name, parameters, arguments)                        \
  extern "C" __attribute__((visibility("default"))) result pnccl##name parameters { \
    note_call(#name);                                                               \
    return fake::name arguments;                                                    \
  }                                                                                 \
  extern "C" __attribute__((weak, alias("pnccl" #name), visibility("default")))     \
  result nccl##name parameters;
#include "runtime/doors/nccl/abi/api.def"
#undef API
