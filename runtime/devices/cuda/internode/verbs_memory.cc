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

/// Of one allocation; the region is nullptr where the network device cannot read it.
struct Readable {
  Region region;
  std::string why;
};

}  // namespace

Fd VerbsMemory::dma_buf(const uint8_t* data, uint64_t bytes, unsigned long long flags,
                        std::string& why) const {
  const Driver& driver = context_->driver();
  if (driver.MemGetHandleForAddressRange == nullptr ||
      context_->attribute(abi::kDmaBufSupported) == 0) {
    why = "the driver has no dma-bufs here";
    return {};
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
  why = "no dma-buf: " + text_of(driver, result);
  return {};
}

/// What a peer may write ends where the memory does, so that pages are not filled up: memory that
/// begins inside one goes by another way.
Region VerbsMemory::by_data_direct(uint8_t* data, uint64_t bytes, int access,
                                   std::string& why) const {
  const auto& function = adapter_->data_direct();
  if (!function) {
    why = adapter_->no_data_direct();
    return nullptr;
  }
  if (address_of(data) % page_bytes() != 0) {
    why = "it begins inside a page";
    return nullptr;
  }
  // Only on systems with another way than PCI between processor and GPU the driver knows the flag.
  Fd file = dma_buf(data, bytes, abi::kDmaBufByPci, why);
  if (!file.valid()) file = dma_buf(data, bytes, 0, why);
  if (!file.valid()) return nullptr;
  return verbs::make_data_direct_region(*function, adapter_->domain(), file, data, bytes, access,
                                        why);
}

Region VerbsMemory::by_dma_buf(uint8_t* data, uint64_t bytes, int access, std::string& why) const {
  const Fd file = dma_buf(data, bytes, 0, why);
  if (!file.valid()) return nullptr;
  return MemoryRegion::make_of_dma_buf(adapter_->domain(), file, address_of(data) % page_bytes(),
                                       data, bytes, access, why);
}

/// Looked for only now, as a machine with dma-bufs needs no such module.
Region VerbsMemory::by_address(uint8_t* data, uint64_t bytes, int access, std::string& why) const {
  const std::string& sysfs = adapter_->options().sysfs;
  std::error_code ignored;
  const bool loaded = std::ranges::any_of(kPeermem, [&](const char* folder) {
    return std::filesystem::exists(sysfs + folder, ignored);
  });
  if (loaded) return MemoryRegion::make(adapter_->domain(), data, bytes, access, why);
  why = "nvidia-peermem is not loaded";
  return nullptr;
}

VerbsMemory::Direct VerbsMemory::make_direct(uint8_t* data, uint64_t bytes, int access,
                                             std::string& why) const {
  Direct direct{.address = address_of(data)};
  if (!direct_) {
    why = "MSCCLC_FORCE_DISABLE_GDR is set";
    return direct;
  }
  direct.region = by_data_direct(data, bytes, access, why);
  direct.data_direct = direct.region != nullptr;
  if (direct.data_direct) return direct;
  std::string no_dma_buf, no_address;
  direct.region = by_dma_buf(data, bytes, access, no_dma_buf);
  if (direct.region == nullptr) direct.region = by_address(data, bytes, access, no_address);
  if (direct.region == nullptr) why = no_dma_buf + "; " + no_address;
  return direct;
}

std::shared_ptr<const VerbsMemory::Exposed> VerbsMemory::expose(uint8_t* data, uint64_t bytes,
                                                                MemoryPlace place,
                                                                Diagnostics& diagnostics) {
  bytes = std::max<uint64_t>(bytes, 1);
  const auto exposed = std::make_shared<Exposed>();
  if (place == MemoryPlace::host) {
    exposed->region = adapter_->expose(data, bytes, diagnostics);
  } else {
    std::string why;
    const Direct direct = make_direct(data, bytes, kExposed, why);
    if (direct.region == nullptr) return stage(bytes, why, diagnostics);
    add(direct, why);
    exposed->region = direct.region;
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
    const auto readable = std::make_shared<Readable>();
    uint8_t* const data = allocation.memory().data();
    const uint64_t bytes = std::max<uint64_t>(allocation.memory().bytes(), 1);
    readable->region = place == MemoryPlace::host
                           ? adapter_->read_from(data, bytes, readable->why)
                           : make_direct(data, bytes, 0, readable->why).region;
    return readable;
  });
  const auto& readable = *static_cast<const Readable*>(made.get());
  if (readable.region != nullptr) return {.key = readable.region->local_key()};
  return {.error = readable.why};
}

void VerbsMemory::add(const Direct& direct, const std::string& why) {
  const std::lock_guard lock(mutex_);
  std::erase_if(directs_, [](const Known& known) { return known.region.expired(); });
  directs_.push_back({direct.region, direct.address, direct.data_direct});
  if (std::exchange(said_, true)) return;
  log(LogLevel::info, LogArea::init, std::nullopt,
      fmt::format("{} writes the memory of cuda:{} by {}; a read of it comes before each signal",
                  adapter_->port().context->name(), context_->ordinal(),
                  direct.data_direct ? "its data-direct function " + adapter_->data_direct()->path
                                     : "its own function (" + why + ")"));
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
