#include "runtime/devices/cuda/internode/verbs_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runtime/support/observe/log.h"

namespace mscclc::cuda {
namespace {

using verbs::MemoryRegion;
using Region = std::shared_ptr<const MemoryRegion>;

/// Peers may not read it: their queue pairs here do not allow that.
constexpr int kExposed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

/// Where nvidia-peermem, or what was there before it, shows that it is loaded.
constexpr const char* kPeermem[] = {"/module/nvidia_peermem", "/kernel/mm/memory_peers/nv_mem",
                                    "/kernel/mm/memory_peers/nv_mem_nc"};

uint64_t page_bytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Of one allocation that the network device reads.
using Readable = Result<Region>;

}  // namespace

Result<Fd> VerbsMemory::dma_buf(const uint8_t* data, uint64_t bytes,
                                unsigned long long flags) const {
  const Driver& driver = context_->driver();
  if (driver.MemGetHandleForAddressRange == nullptr ||
      context_->attribute(abi::kDmaBufSupported) == 0) {
    return Error{"the driver has no dma-bufs here"};
  }
  const abi::Address address = address_of(data), first = address / page_bytes() * page_bytes();
  const abi::Address end = (address + bytes + page_bytes() - 1) / page_bytes() * page_bytes();
  int descriptor = -1;
  const CurrentContext current(*context_);
  const OutsideCapture outside(driver);
  const abi::Result result = current.is_set()
                                 ? driver.MemGetHandleForAddressRange(
                                       &descriptor, first, end - first, abi::kDmaBufFd, flags)
                                 : abi::kInvalidContext;
  if (result == abi::kSuccess) return Fd(descriptor);
  return Error{"no dma-buf: " + text_of(driver, result)};
}

/// What a peer may write ends where the memory does, so that pages are not filled up: memory that
/// begins inside one goes by another way.
Result<Region> VerbsMemory::by_data_direct(uint8_t* data, uint64_t bytes, int access) const {
  const auto& function = adapter_->data_direct();
  if (!function) return function.error();
  if (address_of(data) % page_bytes() != 0) return Error{"it begins inside a page"};
  // Only on systems with another way than PCI between processor and GPU the driver knows the flag.
  auto file = dma_buf(data, bytes, abi::kDmaBufByPci);
  if (!file) file = dma_buf(data, bytes, 0);
  if (!file) return file.error();
  return verbs::make_data_direct_region(*function, adapter_->domain(), *file, data, bytes, access);
}

Result<Region> VerbsMemory::by_dma_buf(uint8_t* data, uint64_t bytes, int access) const {
  const auto file = dma_buf(data, bytes, 0);
  if (!file) return file.error();
  return MemoryRegion::make_of_dma_buf(adapter_->domain(), *file, address_of(data) % page_bytes(),
                                       data, bytes, access);
}

/// Looked for only now, as a machine with dma-bufs needs no such module.
Result<Region> VerbsMemory::by_address(uint8_t* data, uint64_t bytes, int access) const {
  const std::string& sysfs = adapter_->options().sysfs;
  std::error_code ignored;
  const bool loaded = std::ranges::any_of(kPeermem, [&](const char* folder) {
    return std::filesystem::exists(sysfs + folder, ignored);
  });
  if (!loaded) return Error{"nvidia-peermem is not loaded"};
  return MemoryRegion::make(adapter_->domain(), data, bytes, access);
}

Result<VerbsMemory::Direct> VerbsMemory::make_direct(uint8_t* data, uint64_t bytes,
                                                     int access) const {
  if (!direct_) return Error{"MSCCLC_FORCE_DISABLE_GDR is set"};
  const auto best = by_data_direct(data, bytes, access);
  if (best) return Direct{*best, address_of(data), true};
  auto region = by_dma_buf(data, bytes, access);
  if (!region) {
    const std::string no_dma_buf = region.error().text();
    region = by_address(data, bytes, access);
    if (!region) return Error{no_dma_buf + "; " + region.error().text()};
  }
  return Direct{*region, address_of(data), false, best.error().text()};
}

std::shared_ptr<const VerbsMemory::Exposed> VerbsMemory::expose(uint8_t* data, uint64_t bytes,
                                                                MemoryPlace place,
                                                                Diagnostics& diagnostics) {
  bytes = std::max<uint64_t>(bytes, 1);
  const auto exposed = std::make_shared<Exposed>();
  if (place == MemoryPlace::host) {
    exposed->region = adapter_->expose(data, bytes, diagnostics);
  } else {
    const auto direct = make_direct(data, bytes, kExposed);
    if (!direct) return stage(bytes, direct.error().text(), diagnostics);
    add(*direct);
    exposed->region = direct->region;
  }
  if (exposed->region == nullptr) return nullptr;
  exposed->key = {address_of(data), exposed->region->remote_key(), false};
  return exposed;
}

std::shared_ptr<const VerbsMemory::Exposed> VerbsMemory::stage(uint64_t bytes,
                                                               const std::string& why,
                                                               Diagnostics& diagnostics) {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(said_, true)) {
      diagnostics.warning(
          "gpu-memory-staged", {},
          fmt::format("{} does not reach the memory of cuda:{}: what comes for it is copied "
                      "through host memory ({})",
                      adapter_->port().context->name(), context_->ordinal(), why));
    }
  }
  auto staging = allocate_pinned(context_, bytes, "what comes over verbs for a GPU", diagnostics);
  if (staging == nullptr) return nullptr;
  const auto exposed = std::make_shared<Exposed>();
  exposed->region = adapter_->expose(staging->data(), bytes, diagnostics);
  if (exposed->region == nullptr) return nullptr;
  exposed->key = {address_of(staging->data()), exposed->region->remote_key(), true};
  exposed->staging = std::move(staging);
  return exposed;
}

verbs::Source VerbsMemory::source(OwnAllocation& allocation, MemoryPlace place) {
  const auto made = allocation.attached().get(adapter_->domain().get(), 0, 0, [&] {
    uint8_t* const data = allocation.memory().data();
    const uint64_t bytes = std::max<uint64_t>(allocation.memory().bytes(), 1);
    if (place == MemoryPlace::host) {
      return std::make_shared<Readable>(adapter_->read_from(data, bytes));
    }
    const auto direct = make_direct(data, bytes, 0);
    return std::make_shared<Readable>(direct ? Readable(direct->region) : direct.error());
  });
  const auto& readable = *static_cast<const Readable*>(made.get());
  if (readable) return {.key = (*readable)->local_key()};
  return {.error = readable.error().text()};
}

void VerbsMemory::add(const Direct& direct) {
  const std::lock_guard lock(mutex_);
  std::erase_if(directs_, [](const Known& known) { return known.region.expired(); });
  directs_.push_back({direct.region, direct.address, direct.data_direct});
  if (std::exchange(said_, true)) return;
  log(LogLevel::info, LogArea::init, std::nullopt,
      fmt::format("{} writes the memory of cuda:{} by {}; a read of it comes before each signal",
                  adapter_->port().context->name(), context_->ordinal(),
                  direct.data_direct ? "its data-direct function " + adapter_->data_direct()->path
                                     : "its own function (" + direct.why + ")"));
}

std::array<VerbsMemory::Direct, 2> VerbsMemory::one_of_each_path() {
  std::array<Direct, 2> found;
  const std::lock_guard lock(mutex_);
  for (const Known& known : directs_) {
    Direct& direct = found[known.data_direct ? 1 : 0];
    if (direct.region == nullptr) direct = {known.region.lock(), known.address, known.data_direct};
  }
  return found;
}

}  // namespace mscclc::cuda
