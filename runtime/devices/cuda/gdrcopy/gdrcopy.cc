#include "runtime/devices/cuda/gdrcopy/gdrcopy.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>

#include "executor/shared_atomics.h"
#include "runtime/support/fd.h"
#include "runtime/support/process/open_library.h"
#include "runtime/support/process/per_process.h"

namespace mscclc::cuda {
namespace {

constexpr int kVersion = 2;

/// The library is for one thread at a time: it has lists and counts without locks.
struct OfProcess {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const GdrCopy>> open;  ///< by library
};

OfProcess& of_process() {
  static PerProcess<OfProcess> made;
  return made.get();
}

bool load(const std::string& file, gdr::Functions& functions, std::string& why) {
  void* const opened = open_library(file, why);
  if (opened == nullptr) return false;
#define FIND(name, result, parameters) \
  if (!find_function(opened, "gdr_" #name, functions.name, why)) return false;
  MSCCLC_GDR_FUNCTIONS(FIND)
#undef FIND
  return true;
}

/// What a store has left in buffers of the processor leaves them now: the mapping combines writes.
void send_stores() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

std::shared_ptr<const GdrCopy> GdrCopy::open(const std::string& library, std::string& why) {
  OfProcess& here = of_process();
  const std::lock_guard lock(here.mutex);
  if (auto there = here.open[library].lock()) return there;
  gdr::Functions functions;
  if (!load(library, functions, why)) return nullptr;
  int major = 0, minor = 0;
  functions.runtime_get_version(&major, &minor);
  if (major != kVersion) {
    why = fmt::format("{} is version {}.{} of GDRCopy, not {}", library, major, minor, kVersion);
    return nullptr;
  }
  // It compares the driver's version with its own.
  const gdr::Connection connection = functions.open();
  if (connection == nullptr) {
    why = "GDRCopy's driver (gdrdrv) is not loaded, is too old, or may not be used";
    return nullptr;
  }
  std::shared_ptr<const GdrCopy> made(
      new GdrCopy(functions, connection, fmt::format("{}.{}", major, minor)));
  here.open[library] = made;
  return made;
}

GdrCopy::~GdrCopy() {
  const std::lock_guard lock(of_process().mutex);
  functions_.close(connection_);
}

std::unique_ptr<const GdrMapping> GdrMapping::make(std::shared_ptr<const GdrCopy> gdr,
                                                   uint64_t address, uint64_t bytes,
                                                   std::string& why) {
  std::unique_ptr<GdrMapping> made(new GdrMapping(std::move(gdr), address, bytes));
  return made->pin(why) && made->map(why) ? std::move(made) : nullptr;
}

bool GdrMapping::pin(std::string& why) {
  const std::lock_guard lock(of_process().mutex);
  const int error =
      gdr_->functions_.pin_buffer(gdr_->connection_, address_, bytes_, 0, 0, &handle_);
  pinned_ = error == 0;
  if (!pinned_) why = fmt::format("GDRCopy cannot pin {} bytes: {}", bytes_, error_text(error));
  return pinned_;
}

bool GdrMapping::map(std::string& why) {
  const std::lock_guard lock(of_process().mutex);
  const gdr::Functions& functions = gdr_->functions_;
  void* mapped = nullptr;
  if (const int error = functions.map(gdr_->connection_, handle_, &mapped, bytes_); error != 0) {
    why = fmt::format("GDRCopy cannot map {} bytes: {}", bytes_, error_text(error));
    return false;
  }
  mapped_ = static_cast<uint8_t*>(mapped);
  gdr::Info info{};
  if (const int error = functions.get_info_v2(gdr_->connection_, handle_, &info); error != 0) {
    why = "GDRCopy does not say what it has mapped: " + error_text(error);
    return false;
  }
  if (info.address == address_ && info.mapped_bytes >= bytes_) return true;
  why = fmt::format("GDRCopy has mapped {} bytes at {:#x}, not {} at {:#x}", info.mapped_bytes,
                    info.address, bytes_, address_);
  return false;
}

GdrMapping::~GdrMapping() {
  if (!pinned_) return;
  const std::lock_guard lock(of_process().mutex);
  if (mapped_ != nullptr) gdr_->functions_.unmap(gdr_->connection_, handle_, mapped_, bytes_);
  gdr_->functions_.unpin_buffer(gdr_->connection_, handle_);
}

void GdrMapping::store(uint64_t address, uint64_t value) const {
  store_release(mapped_ + (address - address_), value);
  send_stores();
}

}  // namespace mscclc::cuda
