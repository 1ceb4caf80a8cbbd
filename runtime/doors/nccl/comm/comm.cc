#include "runtime/doors/nccl/comm/comm.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "runtime/api/bootstrap.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/support/process/forks.h"
#include "runtime/support/process/per_process.h"

namespace mscclc::nccl {
namespace {

/// Addresses at which nothing lies: a caller that follows a handle of ours crashes there, and no
/// pointer of the real NCCL's is one of them.
class HandleSpace {
 public:
  HandleSpace() {
    void* const base =
        ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    base_ = base == MAP_FAILED ? 0 : reinterpret_cast<uintptr_t>(base);
  }
  ~HandleSpace() {
    if (base_ != 0) ::munmap(reinterpret_cast<void*>(base_), kBytes);
  }
  /// nullptr: there are no more.
  ncclComm_t next() {
    const uintptr_t offset = ++given_ * kStep;
    return base_ == 0 || offset >= kBytes ? nullptr : reinterpret_cast<ncclComm_t>(base_ + offset);
  }
  bool has(ncclComm_t handle) const {
    const uintptr_t address = reinterpret_cast<uintptr_t>(handle);
    return base_ != 0 && address > base_ && address <= base_ + given_ * kStep;
  }

 private:
  static constexpr uintptr_t kStep = 16, kBytes = uintptr_t{16} << 30;
  uintptr_t base_ = 0;
  std::atomic<uintptr_t> given_{0};
};

/// Never destroyed: what runs while the process ends may still ask.
HandleSpace& handles() { return kept_over_forks<HandleSpace>(); }

struct Table {
  std::shared_mutex mutex;
  std::unordered_map<ncclComm_t, CommPointer> comms;
};
/// What the process has made. A child of fork() has none of the threads that its parent's
/// communicators live by: it begins with a table of its own.
Table& table() { return process_wide<Table>(); }

}  // namespace

Comm::~Comm() {
  // Peers may still map what these have made: they end in the order in which they need each other.
  messages.reset();
  plans.reset();
  order.reset();
  communicator.reset();
  if (device != nullptr && null_stream != nullptr) device->destroy_stream(null_stream);
}

ncclComm_t add_comm(const CommPointer& comm) {
  comm->handle = handles().next();
  comm->forks = forks();
  if (comm->handle != nullptr) put_back_comm(comm);
  return comm->handle;
}

void put_back_comm(const CommPointer& comm) {
  const std::lock_guard lock(table().mutex);
  table().comms.emplace(comm->handle, comm);
}

CommPointer find_comm(ncclComm_t handle) {
  const std::shared_lock lock(table().mutex);
  const auto found = table().comms.find(handle);
  return found == table().comms.end() ? nullptr : found->second;
}

CommPointer remove_comm(ncclComm_t handle) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().comms.find(handle);
  if (found == table().comms.end()) return nullptr;
  CommPointer comm = std::move(found->second);
  table().comms.erase(found);
  return comm;
}

bool is_our_handle(ncclComm_t handle) { return handles().has(handle); }

CommPointer usable_comm(ncclComm_t handle, const char* function, ncclResult_t& result) {
  CommPointer comm = find_comm(handle);
  if (comm == nullptr) {
    result = fail(ncclInvalidArgument,
                  fmt::format("{}: {}", function,
                              handle == nullptr ? "the communicator is NULL"
                              : is_our_handle(handle)
                                  ? "the communicator is destroyed, or was made before this "
                                    "process was forked"
                                  : "there is no such communicator"));
    return nullptr;
  }
  result = check_stage(*comm, function);
  return result == ncclSuccess ? comm : nullptr;
}

ncclResult_t check_stage(const Comm& comm, const char* function) {
  const auto refuse = [&](ncclResult_t code, const char* why) {
    return fail(code, fmt::format("{}: {}", function, why));
  };
  if (comm.forks != forks_so_far()) {
    return refuse(ncclInvalidUsage, "the communicator was made before this process was forked");
  }
  switch (comm.stage) {
    case Stage::ready:
      return check_unwaited(comm, function);
    case Stage::making:
      return refuse(ncclInvalidArgument, "the communicator is not ready: ncclInProgress");
    case Stage::failed:
      return refuse(ncclInvalidUsage, "the communicator could not be made: abort or destroy it");
    case Stage::finalized:
      return refuse(ncclInvalidArgument, "the communicator is finalized");
    case Stage::revoked:
      return refuse(ncclInvalidUsage, "the communicator is revoked");
    case Stage::aborted:
      return refuse(ncclInvalidUsage, "the communicator is aborted");
    case Stage::destroyed:
      return refuse(ncclInvalidUsage, "the communicator is destroyed");
  }
  return refuse(ncclInternalError, "the communicator is at no stage");
}

Stage begin_unwaited(Comm& comm) {
  const std::lock_guard lock(comm.tables);
  ++comm.unwaited;
  comm.async_error = ncclInProgress;
  return comm.stage;
}

void end_unwaited(Comm& comm, Stage begun_at, ncclResult_t result) {
  const std::lock_guard lock(comm.tables);
  const bool is_revoked = comm.stage == Stage::revoked && begun_at != Stage::revoked;
  if (result != ncclSuccess && !is_revoked) comm.unwaited_error = result;
  if (--comm.unwaited > 0) return;
  result = std::exchange(comm.unwaited_error, ncclSuccess);
  // What is finalized meanwhile says itself when that has ended.
  if (comm.stage == Stage::ready || comm.stage == Stage::revoked) comm.async_error = result;
}

ncclResult_t check_unwaited(const Comm& comm, const char* function) {
  if (comm.unwaited == 0) return ncclSuccess;
  return fail(ncclInvalidArgument,
              fmt::format("{}: what was asked of the communicator before is not done yet: "
                          "ncclInProgress",
                          function));
}

ncclResult_t settle(Comm& comm, ncclComm_t real, ncclResult_t result) {
  const auto aborted = [&] {
    return comm.stage == Stage::aborted || (comm.stage == Stage::revoked && comm.real == nullptr);
  };
  while (result == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(comm.asking);
    if (aborted()) return fail(ncclInvalidUsage, "the communicator was aborted");
    if (real_nccl()->CommGetAsyncError(real, &result) != ncclSuccess) return ncclInternalError;
  }
  return result;
}

namespace {

/// No call of the real NCCL begins any more.
bool has_ended(const Comm& comm) {
  return comm.stage == Stage::aborted || comm.stage == Stage::revoked;
}

/// Takes the real NCCL's communicator, ends its calls, and frees it: if it can be revoked, once
/// enter_real() and leave_real() say that none is under way. REQUIRES: has_ended().
ncclResult_t abort_real(Comm& comm) {
  const InsideReal inside;
  ncclComm_t real = nullptr;
  bool called = false;
  {
    const std::lock_guard lock(comm.asking);
    real = comm.real.exchange(nullptr);
    if (real == nullptr) return ncclSuccess;
    called = comm.calling > 0 && real_nccl()->CommRevoke != nullptr;
    if (called) {
      comm.leaving = real;
      ++comm.calling;
    }
  }
  if (!called) return real_nccl()->CommAbort(real);
  const ncclResult_t revoked = real_nccl()->CommRevoke(real, 0);
  leave_real(comm);
  return revoked;
}

}  // namespace

ncclResult_t enter_real(Comm& comm) {
  const std::lock_guard lock(comm.asking);
  if (has_ended(comm)) return fail(ncclInvalidUsage, "the communicator was aborted");
  ++comm.calling;
  return ncclSuccess;
}

void leave_real(Comm& comm) {
  ncclComm_t left = nullptr;
  {
    const std::lock_guard lock(comm.asking);
    if (--comm.calling == 0) left = std::exchange(comm.leaving, nullptr);
  }
  const InsideReal inside;
  if (left != nullptr) (void)real_nccl()->CommAbort(left);
}

ncclResult_t end_calls(Comm& comm, const char* why) {
  comm.communicator->abort(why);
  if (comm.messages != nullptr) comm.messages->abort(why);
  if (real_nccl() == nullptr || real_nccl()->CommRevoke == nullptr) return abort_real(comm);
  ncclComm_t real = nullptr;
  {
    const std::lock_guard after_what_is_made_known(comm.asking);
    real = comm.real;
    if (real == nullptr) return ncclSuccess;
    ++comm.calling;  // an abort beside it does not free what is revoked
  }
  ncclResult_t revoked = ncclSuccess;
  {
    const InsideReal inside;
    revoked = settle(comm, real, real_nccl()->CommRevoke(real, 0));
  }
  leave_real(comm);
  return revoked;
}

namespace {

ncclResult_t init_real(Comm& comm, const ncclUniqueId& id, ncclComm_t& made) {
  const RealNccl& real = *real_nccl();
  const InsideReal inside;
  std::array<uint8_t, kMaxConfigBytes> bytes;
  const int ranks = static_cast<int>(comm.ranks), rank = static_cast<int>(comm.rank);
  const ncclResult_t result =
      real.CommInitRankConfig != nullptr
          ? real.CommInitRankConfig(&made, ranks, id, rank, comm.config.for_real(bytes))
          : real.CommInitRank(&made, ranks, id, rank);
  const ncclResult_t settled = settle(comm, made, result);
  // What is aborted while NCCL still makes it has no owner.
  if (settled != ncclSuccess && made != nullptr) (void)real.CommAbort(std::exchange(made, nullptr));
  return settled;
}

/// Registers at the real NCCL what was registered before there was a communicator of it.
void register_at_real(Comm& comm, ncclComm_t made) {
  const RealNccl& real = *real_nccl();
  if (real.CommRegister == nullptr) return;
  const std::lock_guard lock(comm.tables);
  const InsideReal inside;
  for (auto& [handle, entry] : comm.registrations) {
    // A hint: what it makes of it changes no result.
    (void)real.CommRegister(made, entry->buffer, entry->bytes, &entry->real);
  }
}

/// Gives a communicator the real NCCL's. False: it is aborted, and so is the real one.
bool make_known(Comm& comm, ncclComm_t made) {
  {
    const std::lock_guard lock(comm.asking);
    if (!has_ended(comm)) {
      comm.real = made;
      return true;
    }
  }
  const InsideReal inside;
  (void)real_nccl()->CommAbort(made);
  return false;
}

/// Rank 0's id of the real NCCL, at all ranks; all learn of it if there is none.
ncclResult_t share_real_id(Comm& comm, ncclUniqueId& id) {
  std::vector<uint8_t> own;
  if (comm.rank == 0) {
    const InsideReal inside;
    if (real_nccl()->GetUniqueId(&id) == ncclSuccess) {
      own.assign(id.internal, id.internal + sizeof id.internal);
    }
  }
  std::vector<std::vector<uint8_t>> all;
  Diagnostics diagnostics;
  if (!comm.communicator->bootstrap().all_gather(own, "NCCL's id", all, diagnostics)) {
    return fail(ncclRemoteError, "cannot share NCCL's id", diagnostics);
  }
  if (all.empty() || all[0].size() != sizeof id.internal) {
    return fail(ncclInternalError, "NCCL gives rank 0 no id to fall back with");
  }
  std::memcpy(id.internal, all[0].data(), sizeof id.internal);
  return ncclSuccess;
}

}  // namespace

ncclResult_t make_real(Comm& comm) {
  if (comm.real != nullptr) return ncclSuccess;
  if (!comm.facts.has_real) {
    const std::string why = comm.why_real.empty() ? "" : ", as " + comm.why_real;
    return fail(ncclInvalidUsage,
                fmt::format("no plan serves the call{}, and {}", why, comm.why_no_real));
  }
  ncclUniqueId id{};
  ncclResult_t result = share_real_id(comm, id);
  if (result != ncclSuccess) return result;
  ncclComm_t made = nullptr;
  result = init_real(comm, id, made);
  if (result != ncclSuccess) {
    return fail(result, fmt::format("NCCL cannot make a communicator: {}", error_string(result)));
  }
  register_at_real(comm, made);
  if (!make_known(comm, made)) {
    return fail(ncclInvalidUsage, "the communicator was aborted while NCCL made its own");
  }
  inform(Subsystem::init, comm.ordinal,
         fmt::format("rank {} of {}: NCCL {} serves what no plan does", comm.rank, comm.ranks,
                     version_text(real_nccl()->version)));
  return ncclSuccess;
}

ncclResult_t close_comm(Comm& comm, bool abort) {
  if (abort) {
    // The mutex may be held by a thread that hangs: both aborts end its wait.
    if (comm.communicator != nullptr) comm.communicator->abort("ncclCommAbort()");
    if (comm.messages != nullptr) comm.messages->abort("ncclCommAbort()");
    (void)abort_real(comm);
    return ncclSuccess;
  }
  ncclComm_t real = nullptr;
  {
    const std::lock_guard not_while_asked(comm.asking);
    real = comm.real.exchange(nullptr);
  }
  ncclResult_t result = ncclSuccess;
  const std::lock_guard lock(comm.mutex);
  {
    const InsideReal inside;
    if (real != nullptr && real_nccl()->CommFinalize != nullptr && comm.stage == Stage::ready) {
      result = settle(comm, real, real_nccl()->CommFinalize(real));
    }
  }
  comm.messages.reset();
  comm.plans.reset();
  comm.profiler.reset();
  const InsideReal inside;
  if (real != nullptr) {
    const ncclResult_t destroyed = real_nccl()->CommDestroy(real);
    if (result == ncclSuccess) result = destroyed;
  }
  return result;
}

}  // namespace mscclc::nccl
