#include "runtime/devices/host/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/support/failed_call.h"
#include "runtime/support/machine.h"
#include "runtime/support/process/per_process.h"

namespace mscclc {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// `file`: invalid: new memory without one. `kept`: the mapping keeps the file, for others to map.
std::shared_ptr<SharedMapping> map(Fd file, uint64_t bytes, bool kept) {
  const int how = file.valid() ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, how, file.get(), 0);
  if (data == MAP_FAILED) return nullptr;
  return std::make_shared<SharedMapping>(
      static_cast<uint8_t*>(data), bytes,
      kept ? std::make_shared<const Fd>(std::move(file)) : nullptr);
}

}  // namespace

SharedMapping::~SharedMapping() {
  attached_.clear();  // while the memory is there
  munmap(data_, bytes_);
}

std::shared_ptr<SharedMapping> SharedMapping::create(uint64_t bytes, const std::string& what,
                                                     Diagnostics& diagnostics, bool others) {
  const auto fail = [&](const char* step) {
    report_failed_call(diagnostics, "out-of-memory",
                       "cannot allocate {} bytes of shared memory for {}: {}", bytes, what, step);
    return nullptr;
  };
  // The system gives it, and ends a process that writes to it.
  if (bytes > memory_of_machine()) {
    diagnostics.error("out-of-memory", {},
                      fmt::format("cannot allocate {} bytes of shared memory for {}: the machine "
                                  "has {} bytes of memory",
                                  bytes, what, memory_of_machine()));
    return nullptr;
  }
  if (!others) {
    auto mapping = map(Fd(), bytes, false);
    return mapping != nullptr ? mapping : fail("mmap");
  }
  Fd file(memfd_create("mscclc", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return fail("memfd_create");
  const QuietWrites quiet;
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return fail("ftruncate");
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return fail("sealing");
  auto mapping = map(std::move(file), bytes, true);
  return mapping != nullptr ? mapping : fail("mmap");
}

std::shared_ptr<SharedMapping> SharedMapping::open(Fd file, uint64_t bytes,
                                                   Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& why) {
    diagnostics.error("bad-handle", {}, "cannot map a peer's shared memory: " + why);
    return nullptr;
  };
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return fail(error_text(errno));
  if (static_cast<uint64_t>(status.st_size) != bytes) {
    return fail(fmt::format("it has {} bytes, not {}", status.st_size, bytes));
  }
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return fail("its size may change");
  auto mapping = map(std::move(file), bytes, false);
  return mapping != nullptr ? mapping : fail(error_text(errno));
}

SharedMappings& SharedMappings::of_process() { return process_wide<SharedMappings>(); }

void SharedMappings::add(const std::shared_ptr<SharedMapping>& mapping) {
  const std::lock_guard lock(mutex_);
  std::erase_if(by_address_, [](const auto& entry) { return entry.second.expired(); });
  by_address_[reinterpret_cast<uintptr_t>(mapping->data())] = mapping;
}

std::shared_ptr<SharedMapping> SharedMappings::find(const void* address, uint64_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  auto after = by_address_.upper_bound(at);
  if (after == by_address_.begin()) return nullptr;
  std::shared_ptr<SharedMapping> mapping = std::prev(after)->second.lock();
  if (mapping == nullptr) return nullptr;
  const uint64_t offset = at - reinterpret_cast<uintptr_t>(mapping->data());
  if (offset > mapping->bytes() || bytes > mapping->bytes() - offset) return nullptr;
  return mapping;
}

}  // namespace mscclc
