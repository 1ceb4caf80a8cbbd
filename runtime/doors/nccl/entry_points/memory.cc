// Memory: allocation, registration and windows.
#include <fmt/format.h>

#include <map>
#include <mutex>

#include "runtime/doors/nccl/backends/device.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/group.h"
#include "runtime/doors/nccl/entry_points/entry_points.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/process/per_process.h"

namespace mscclc::nccl {
namespace {

/// What ncclMemAlloc() has given out where there is no NCCL to do it. Never destroyed: memory may
/// be freed while the process ends.
struct Allocations {
  struct Allocation {
    std::shared_ptr<Device> device;
    std::unique_ptr<Memory> memory;
  };
  std::mutex mutex;
  std::map<void*, Allocation> by_address;
};
Allocations& allocations() { return kept_over_forks<Allocations>(); }

ncclResult_t allocate(void** address, size_t bytes) {
  Diagnostics diagnostics;
  Allocations::Allocation entry;
  entry.device = open_device(current_ordinal(), diagnostics);
  if (entry.device != nullptr) {
    entry.memory = entry.device->allocate(bytes, "ncclMemAlloc()", diagnostics);
  }
  if (entry.memory == nullptr) return fail(ncclUnhandledCudaError, "ncclMemAlloc", diagnostics);
  *address = entry.memory->data();
  const std::lock_guard lock(allocations().mutex);
  allocations().by_address.emplace(*address, std::move(entry));
  return ncclSuccess;
}

/// True if it was ours.
bool free_own(void* address) {
  Allocations::Allocation entry;  // freed without the lock
  const std::lock_guard lock(allocations().mutex);
  const auto found = allocations().by_address.find(address);
  if (found == allocations().by_address.end()) return false;
  entry = std::move(found->second);
  allocations().by_address.erase(found);
  return true;
}

/// A communicator that only the real NCCL knows.
bool is_foreign(ncclComm_t comm) {
  return comm != nullptr && !is_our_handle(comm) && real_nccl() != nullptr;
}

/// Plans reach it no more.
void forget_window(Comm& comm, ncclWindow_t window) {
  const std::lock_guard lock(comm.mutex);
  const auto memory = comm.windows.take(window);
  if (memory && comm.plans != nullptr) comm.plans->deregister_memory(*memory);
}

/// What is asked of a communicator while its calls that no caller waits for hold its mutex would
/// wait for them.
ncclResult_t refuse_unwaited(const Comm& comm, const char* function) {
  return ThreadGroup::of_thread().fail_with(check_unwaited(comm, function));
}

bool has_local_registration() {
  return Environment::of_process().raw(Variable::NCCL_LOCAL_REGISTER) != "0";
}

ncclResult_t invalid_memory(ncclResult_t code, const char* why) {
  return ThreadGroup::of_thread().fail_with(fail(code, why));
}

}  // namespace

namespace entry_points {

ncclResult_t MemAlloc(void** address, size_t bytes) {
  if (address == nullptr) return fail(ncclInvalidArgument, "ncclMemAlloc: ptr is NULL");
  const RealNccl* const real = real_nccl();
  if (real == nullptr || real->MemAlloc == nullptr) return allocate(address, bytes);
  const InsideReal inside;
  return real->MemAlloc(address, bytes);
}

ncclResult_t MemFree(void* address) {
  if (address == nullptr || free_own(address)) return ncclSuccess;
  const RealNccl* const real = real_nccl();
  if (real == nullptr || real->MemFree == nullptr) {
    return fail(ncclInvalidArgument,
                fmt::format("ncclMemFree: {} is not of ncclMemAlloc()", address));
  }
  const InsideReal inside;
  return real->MemFree(address);
}

ncclResult_t CommRegister(const ncclComm_t comm, void* buffer, size_t bytes, void** handle) {
  if (is_foreign(comm) && real_nccl()->CommRegister != nullptr) {
    const InsideReal inside;
    return real_nccl()->CommRegister(comm, buffer, bytes, handle);
  }
  ncclResult_t result = ncclSuccess;
  const CommPointer found = usable_comm(comm, "ncclCommRegister", result);
  if (found == nullptr) return ThreadGroup::of_thread().fail_with(result);
  if (handle == nullptr || buffer == nullptr || bytes == 0) {
    return invalid_memory(ncclInvalidArgument,
                          "ncclCommRegister: buff or handle is NULL, or size is 0");
  }
  *handle = nullptr;
  if (!has_local_registration()) return ncclSuccess;
  auto entry = std::make_unique<Registration>();
  entry->buffer = buffer;
  entry->bytes = bytes;
  const ncclComm_t real = found->real;
  if (real != nullptr && real_nccl()->CommRegister != nullptr) {
    const InsideReal inside;
    result = real_nccl()->CommRegister(real, buffer, bytes, &entry->real);
    if (result != ncclSuccess) return result;
  }
  const std::lock_guard lock(found->tables);
  *handle = entry.get();
  found->registrations.emplace(entry.get(), std::move(entry));
  return ncclSuccess;
}

ncclResult_t CommDeregister(const ncclComm_t comm, void* handle) {
  if (is_foreign(comm) && real_nccl()->CommDeregister != nullptr) {
    const InsideReal inside;
    return real_nccl()->CommDeregister(comm, handle);
  }
  const CommPointer found = find_comm(comm);
  if (found == nullptr) {
    return invalid_memory(ncclInvalidArgument, "ncclCommDeregister: there is no such communicator");
  }
  if (handle == nullptr) return ncclSuccess;
  const ncclResult_t done = refuse_unwaited(*found, "ncclCommDeregister");
  if (done != ncclSuccess) return done;
  std::unique_ptr<Registration> entry;
  {
    const std::lock_guard lock(found->tables);
    const auto registration = found->registrations.find(handle);
    if (registration == found->registrations.end()) {
      return invalid_memory(ncclInvalidUsage, "ncclCommDeregister: there is no such registration");
    }
    entry = std::move(registration->second);
    found->registrations.erase(registration);
  }
  const ncclComm_t real = found->real;
  if (real == nullptr || entry->real == nullptr) return ncclSuccess;
  const InsideReal inside;
  return real_nccl()->CommDeregister(real, entry->real);
}

ncclResult_t CommWindowRegister(ncclComm_t comm, void* buffer, size_t bytes, ncclWindow_t* window,
                                int flags) {
  ncclResult_t result = ncclSuccess;
  NcclCall call;
  call.comm = usable_comm(comm, "ncclCommWindowRegister", result);
  if (call.comm == nullptr) return ThreadGroup::of_thread().fail_with(result);
  if (window == nullptr || buffer == nullptr || bytes == 0) {
    return invalid_memory(ncclInvalidArgument,
                          "ncclCommWindowRegister: buff or win is NULL, or size is 0");
  }
  *window = nullptr;
  // Without windows callers get none, as on machines that have no symmetric memory.
  const bool has_windows = call.comm->facts.has_real && real_nccl()->CommWindowRegister != nullptr;
  if (!has_windows) return ncclSuccess;
  call.make = [buffer, bytes, window, flags](const RealNccl& real, ncclComm_t made) {
    return real.CommWindowRegister(made, buffer, bytes, window, flags);
  };
  if ((flags & kNcclWinCollSymmetric) != 0) call.window = WindowCall{buffer, bytes, window};
  return ThreadGroup::of_thread().add(std::move(call));
}

ncclResult_t CommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  if (window == nullptr) return ncclSuccess;
  const CommPointer found = find_comm(comm);
  if (found != nullptr) {
    const ncclResult_t done = refuse_unwaited(*found, "ncclCommWindowDeregister");
    if (done != ncclSuccess) return done;
  }
  const ncclComm_t real =
      found == nullptr ? (is_foreign(comm) ? comm : nullptr) : found->real.load();
  if (real == nullptr || real_nccl()->CommWindowDeregister == nullptr) {
    return invalid_memory(ncclInvalidArgument, "ncclCommWindowDeregister: there is no such window");
  }
  if (found != nullptr) forget_window(*found, window);
  const InsideReal inside;
  return real_nccl()->CommWindowDeregister(real, window);
}

}  // namespace entry_points
}  // namespace mscclc::nccl
