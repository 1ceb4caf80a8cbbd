#include "runtime/cuda/far/verbs_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace mscclc::cuda {
namespace {

using verbs::MemoryRegion;
using Region = std::shared_ptr<const MemoryRegion>;

/// Peers may not read it: their queue pairs here do not allow that.
constexpr int kExposed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

/// Where nvidia-peermem, or what was there before it, shows that it is loaded.
constexpr const char* kPeermem[] = {"/module/nvidia_peermem", "/kernel/mm/memory_peers/nv_mem",
                                    "/kernel/mm/memory_peers/nv_mem_nc"};

/// Of one allocation; the region is nullptr where the network device cannot read it.
struct Readable {
  Region region;
  std::string why;
};

}  // namespace

Region VerbsMemory::by_dma_buf(uint8_t* data, uint64_t bytes, int access, std::string& why) const {
  const Driver& driver = context_->driver();
  if (driver.MemGetHandleForAddressRange == nullptr ||
      context_->attribute(abi::kDmaBufSupported) == 0) {
    why = "the driver has no dma-bufs here";
    return nullptr;
  }
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const abi::Address address = address_of(data), first = address / page * page;
  const abi::Address end = (address + bytes + page - 1) / page * page;
  int descriptor = -1;
  const CurrentContext current(*context_);
  const OutsideCapture outside(driver);
  const abi::Result result =
      current.is_set()
          ? driver.MemGetHandleForAddressRange(&descriptor, first, end - first, abi::kDmaBufFd, 0)
          : abi::kInvalidContext;
  if (result != abi::kSuccess) {
    why = "no dma-buf: " + text_of(driver, result);
    return nullptr;
  }
  const Fd file(descriptor);
  return MemoryRegion::make_of_dma_buf(adapter_->domain(), file, address - first, data, bytes,
                                       access, why);
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

Region VerbsMemory::make_direct(uint8_t* data, uint64_t bytes, int access, std::string& why) const {
  if (!direct_) {
    why = "MSCCLC_FORCE_DISABLE_GDR is set";
    return nullptr;
  }
  std::string by_address_why;
  Region region = by_dma_buf(data, bytes, access, why);
  if (region == nullptr) region = by_address(data, bytes, access, by_address_why);
  if (region == nullptr) why += "; " + by_address_why;
  return region;
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
    exposed->region = make_direct(data, bytes, kExposed, why);
    if (exposed->region == nullptr) return stage(bytes, why, diagnostics);
    const std::lock_guard lock(mutex_);
    std::erase_if(directs_, [](const auto& direct) { return direct.first.expired(); });
    directs_.emplace_back(exposed->region, address_of(data));
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
  const auto made = allocation.companions().get(adapter_->domain().get(), 0, 0, [&] {
    const auto readable = std::make_shared<Readable>();
    uint8_t* const data = allocation.memory().data();
    const uint64_t bytes = std::max<uint64_t>(allocation.memory().bytes(), 1);
    readable->region = place == MemoryPlace::host ? adapter_->read_from(data, bytes, readable->why)
                                                  : make_direct(data, bytes, 0, readable->why);
    return readable;
  });
  const auto& readable = *static_cast<const Readable*>(made.get());
  if (readable.region != nullptr) return {.key = readable.region->local_key()};
  return {.error = readable.why};
}

std::optional<VerbsMemory::Direct> VerbsMemory::any_direct() {
  const std::lock_guard lock(mutex_);
  for (const auto& [weak, address] : directs_) {
    if (Region region = weak.lock()) return Direct{std::move(region), address};
  }
  return std::nullopt;
}

}  // namespace mscclc::cuda
