// What callers ask a communicator, and how it ends.
#include <fmt/format.h>

#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/group.h"
#include "runtime/doors/nccl/entry_points/entry_points.h"
#include "runtime/doors/nccl/entry_points/ranges.h"

namespace mscclc::nccl {
namespace {

ncclResult_t no_such(const char* function) {
  return ThreadGroup::of_thread().fail_with(
      fail(ncclInvalidArgument, fmt::format("{}: there is no such communicator", function)));
}

/// A fact of a communicator that is made.
template <typename Get>
ncclResult_t ask(const char* function, ncclComm_t handle, int* answer, Get get) {
  const CommPointer comm = find_comm(handle);
  if (comm == nullptr) return no_such(function);
  if (answer == nullptr) {
    return fail(ncclInvalidArgument, fmt::format("{}: there is no place for the answer", function));
  }
  if (comm->stage == Stage::making) {
    return fail(ncclInvalidArgument, fmt::format("{}: the communicator is not ready", function));
  }
  *answer = static_cast<int>(get(*comm));
  return ncclSuccess;
}

/// Looks whether anything has gone wrong, unless a call is at work: then the next question finds
/// it.
void look(Comm& comm) {
  const std::unique_lock lock(comm.mutex, std::try_to_lock);
  if (!lock.owns_lock() || comm.stage != Stage::ready || comm.async_error != ncclSuccess) return;
  Diagnostics diagnostics;
  if (!comm.communicator->check(diagnostics) ||
      (comm.messages != nullptr && !comm.messages->check(diagnostics))) {
    comm.async_error = fail("a communicator", diagnostics);
    return;
  }
  const std::lock_guard asking(comm.asking);
  const ncclComm_t real = comm.real;
  if (real == nullptr) return;
  ncclResult_t error = ncclSuccess;
  const InsideReal inside;
  if (real_nccl()->CommGetAsyncError(real, &error) != ncclSuccess) return;
  // What is in progress is no error yet, and who began it waits for it.
  if (error != ncclSuccess && error != ncclInProgress) comm.async_error = error;
}

/// All calls that were made have ended.
ncclResult_t flush(Comm& comm) {
  const std::lock_guard lock(comm.mutex);
  Diagnostics diagnostics;
  const bool ended = (comm.device == nullptr || comm.device->drain(diagnostics)) &&
                     (comm.messages == nullptr || comm.messages->drain(diagnostics));
  return ended ? ncclSuccess : fail(ncclUnhandledCudaError, "ncclCommFinalize", diagnostics);
}

/// If another thread aborts it meanwhile, what waits in the real NCCL ends; after that nothing
/// begins there.
ncclResult_t finalize_real(Comm& comm) {
  ncclComm_t real = nullptr;
  {
    const std::lock_guard lock(comm.asking);
    if (comm.stage == Stage::aborted) {
      return fail(ncclInvalidUsage, "ncclCommFinalize: the communicator was aborted");
    }
    real = comm.real;
  }
  if (real == nullptr || real_nccl()->CommFinalize == nullptr) return ncclSuccess;
  const InsideReal inside;
  return settle(comm, real, real_nccl()->CommFinalize(real));
}

ncclResult_t finalize(const CommPointer& comm) {
  ncclResult_t result = flush(*comm);
  if (result == ncclSuccess) result = finalize_real(*comm);
  comm->async_error = result;
  return result;
}

/// What is asked for will not be done. An abort by another thread stands.
void take_back_finalize(Comm& comm) {
  Stage expected = Stage::finalized;
  if (comm.stage.compare_exchange_strong(expected, Stage::ready)) comm.async_error = ncclSuccess;
}

}  // namespace

namespace entry_points {

ncclResult_t CommCount(const ncclComm_t comm, int* count) {
  return ask("ncclCommCount", comm, count, [](const Comm& c) { return c.ranks; });
}

ncclResult_t CommCuDevice(const ncclComm_t comm, int* device) {
  return ask("ncclCommCuDevice", comm, device, [](const Comm& c) { return c.ordinal; });
}

ncclResult_t CommUserRank(const ncclComm_t comm, int* rank) {
  return ask("ncclCommUserRank", comm, rank, [](const Comm& c) { return c.rank; });
}

ncclResult_t CommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  if (handle != nullptr && !is_our_handle(handle) && real_nccl() != nullptr) {
    const InsideReal inside;
    return real_nccl()->CommGetAsyncError(handle, error);
  }
  const CommPointer comm = find_comm(handle);
  if (comm == nullptr || error == nullptr) {
    return fail(ncclInvalidArgument, "ncclCommGetAsyncError: comm or asyncError is NULL or wrong");
  }
  look(*comm);
  *error = comm->async_error;
  return ncclSuccess;
}

ncclResult_t CommFinalize(ncclComm_t handle) {
  const NvtxRange range = range_of("ncclCommFinalize");
  if (handle == nullptr) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  const CommPointer comm = usable_comm(handle, "ncclCommFinalize", result);
  if (comm == nullptr) return ThreadGroup::of_thread().fail_with(result);
  {
    const std::lock_guard lock(comm->tables);
    Stage expected = Stage::ready;
    while (!comm->stage.compare_exchange_strong(expected, Stage::finalized)) {
      result = check_stage(*comm, "ncclCommFinalize");  // another thread was faster
      if (result != ncclSuccess) return ThreadGroup::of_thread().fail_with(result);
      expected = Stage::ready;
    }
    if (!comm->blocking) comm->async_error = ncclInProgress;
  }
  return ThreadGroup::of_thread().add(Job{.run = [comm] { return finalize(comm); },
                                          .cancel = [comm] { take_back_finalize(*comm); },
                                          .blocking = comm->blocking,
                                          .in_turn = comm.get()});
}

ncclResult_t CommDestroy(ncclComm_t handle) {
  const NvtxRange range = range_of("ncclCommDestroy");
  if (handle == nullptr) return ncclSuccess;
  const CommPointer found = find_comm(handle);
  if (found == nullptr) return no_such("ncclCommDestroy");
  if (found->stage == Stage::making) {
    return fail(ncclInvalidArgument, "ncclCommDestroy: the communicator is not ready: abort it");
  }
  if (found->stage == Stage::finalized && found->async_error == ncclInProgress) {
    return ThreadGroup::of_thread().fail_with(
        fail(ncclInvalidArgument,
             "ncclCommDestroy: the communicator is still finalized: wait for it, or abort it"));
  }
  const ncclResult_t done = check_unwaited(*found, "ncclCommDestroy");
  if (done != ncclSuccess) return ThreadGroup::of_thread().fail_with(done);
  const CommPointer comm = remove_comm(handle);
  if (comm == nullptr) return no_such("ncclCommDestroy");  // another thread was faster
  const auto run = [comm] {
    const bool finalizes = comm->stage == Stage::ready;
    ncclResult_t result = finalizes ? flush(*comm) : ncclSuccess;
    const ncclResult_t closed = close_comm(*comm, comm->stage == Stage::revoked);
    if (result == ncclSuccess) result = closed;
    comm->stage = Stage::destroyed;  // calls of the same group find it so
    return result;
  };
  return ThreadGroup::of_thread().add(
      Job{.run = run, .cancel = [comm] { put_back_comm(comm); }, .in_turn = comm.get()});
}

ncclResult_t CommAbort(ncclComm_t handle) {
  const NvtxRange range = range_of("ncclCommAbort");
  if (handle == nullptr) return ncclSuccess;
  const CommPointer comm = remove_comm(handle);
  if (comm == nullptr) return no_such("ncclCommAbort");
  // The thread that still makes it finds that it is aborted, and ends it.
  if (comm->stage.exchange(Stage::aborted) == Stage::making) return ncclSuccess;
  return close_comm(*comm, true);
}

ncclResult_t CommRevoke(ncclComm_t handle, int flags) {
  const NvtxRange range = range_of("ncclCommRevoke");
  if (handle == nullptr) return ncclSuccess;
  const CommPointer comm = find_comm(handle);
  if (comm == nullptr) return no_such("ncclCommRevoke");
  Stage expected = Stage::ready;
  if (flags != 0 || !comm->stage.compare_exchange_strong(expected, Stage::revoked)) {
    return ThreadGroup::of_thread().fail_with(fail(
        ncclInvalidArgument,
        "ncclCommRevoke: flags are not 0, or the communicator is not ready, or revoked already"));
  }
  const ncclResult_t ended = end_calls(*comm, "ncclCommRevoke()");
  // What no caller waits for comes to its end meanwhile: before that there are no children.
  return ended == ncclSuccess && comm->unwaited > 0 ? ncclInProgress : ended;
}

}  // namespace entry_points
}  // namespace mscclc::nccl
