#include "runtime/devices/cuda/gdrcopy/gdrcopy.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>

#include "executor/shared_atomics.h"
#include "ir/support/precondition.h"
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

OfProcess& of_process() { return process_wide<OfProcess>(); }

Result<gdr::Functions> load(const std::string& file) {
  const auto opened = open_library(file);
  if (!opened) return opened.error();
  gdr::Functions functions;
  Result<void> found;
#define FIND(name, result, parameters) \
  if (found) found = find_function(*opened, "gdr_" #name, functions.name);
  MSCCLC_GDR_FUNCTIONS(FIND)
#undef FIND
  if (!found) return found.error();
  return functions;
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

Result<std::shared_ptr<const GdrCopy>> GdrCopy::open(const std::string& library) {
  OfProcess& here = of_process();
  const std::lock_guard lock(here.mutex);
  if (auto there = here.open[library].lock()) return there;
  const auto functions = load(library);
  if (!functions) return functions.error();
  int major = 0, minor = 0;
  functions->runtime_get_version(&major, &minor);
  if (major != kVersion) {
    return Error{
        fmt::format("{} is version {}.{} of GDRCopy, not {}", library, major, minor, kVersion)};
  }
  // It compares the driver's version with its own.
  const gdr::Connection connection = functions->open();
  if (connection == nullptr) {
    return Error{"GDRCopy's driver (gdrdrv) is not loaded, is too old, or may not be used"};
  }
  std::shared_ptr<const GdrCopy> made(
      new GdrCopy(*functions, connection, fmt::format("{}.{}", major, minor)));
  here.open[library] = made;
  return made;
}

GdrCopy::~GdrCopy() {
  const std::lock_guard lock(of_process().mutex);
  functions_.close(connection_);
}

Result<std::unique_ptr<const GdrMapping>> GdrMapping::make(std::shared_ptr<const GdrCopy> gdr,
                                                           uint64_t address, uint64_t bytes) {
  precondition(address % kPage == 0 && bytes % kPage == 0);
  std::unique_ptr<GdrMapping> made(new GdrMapping(std::move(gdr), address, bytes));
  auto mapped = made->pin();
  if (mapped) mapped = made->map();
  if (!mapped) return mapped.error();
  return made;
}

Result<void> GdrMapping::pin() {
  const std::lock_guard lock(of_process().mutex);
  const int error =
      gdr_->functions_.pin_buffer(gdr_->connection_, address_, bytes_, 0, 0, &handle_);
  pinned_ = error == 0;
  if (pinned_) return {};
  return Error{fmt::format("GDRCopy cannot pin {} bytes: {}", bytes_, error_text(error))};
}

Result<void> GdrMapping::map() {
  const std::lock_guard lock(of_process().mutex);
  const gdr::Functions& functions = gdr_->functions_;
  void* mapped = nullptr;
  if (const int error = functions.map(gdr_->connection_, handle_, &mapped, bytes_); error != 0) {
    return Error{fmt::format("GDRCopy cannot map {} bytes: {}", bytes_, error_text(error))};
  }
  mapped_ = static_cast<uint8_t*>(mapped);
  gdr::Info info{};
  if (const int error = functions.get_info_v2(gdr_->connection_, handle_, &info); error != 0) {
    return Error{"GDRCopy does not say what it has mapped: " + error_text(error)};
  }
  if (info.address == address_ && info.mapped_bytes >= bytes_) return {};
  return Error{fmt::format("GDRCopy has mapped {} bytes at {:#x}, not {} at {:#x}",
                           info.mapped_bytes, info.address, bytes_, address_)};
}

GdrMapping::~GdrMapping() {
  if (!pinned_) return;
  const std::lock_guard lock(of_process().mutex);
  if (mapped_ != nullptr) gdr_->functions_.unmap(gdr_->connection_, handle_, mapped_, bytes_);
  gdr_->functions_.unpin_buffer(gdr_->connection_, handle_);
}

void GdrMapping::store(uint64_t address, uint64_t value) const {
  precondition(address >= address_ && address - address_ + sizeof value <= bytes_);
  store_release(mapped_ + (address - address_), value);
  send_stores();
}

}  // namespace mscclc::cuda
