#include "runtime/devices/cuda/internode/gpu_counts.h"

#include <fmt/format.h>

#include "runtime/support/observe/log.h"

namespace mscclc::cuda {
namespace {

/// Of a page; the mapping is nullptr where there can be none, so that it is tried once.
struct MappedPage {
  std::shared_ptr<const GdrMapping> mapping;
};

}  // namespace

bool GpuCounts::store(const uint8_t* count, uint64_t value) const {
  if (gdr_ == nullptr) return false;
  const auto allocation = own_->find(count, sizeof value);
  if (allocation == nullptr) return false;
  const Memory& memory = allocation->memory();
  const uint64_t begin = address_of(memory.data());
  const uint64_t page = address_of(count) / GdrMapping::kPage * GdrMapping::kPage;
  // Memory beside it has another owner, which may free it while this is mapped.
  if (page < begin || page + GdrMapping::kPage > begin + memory.bytes()) return false;
  const auto mapped = allocation->attached().get(gdr_.get(), page - begin, GdrMapping::kPage, [&] {
    return std::make_shared<MappedPage>(map(page));
  });
  const auto& mapping = static_cast<const MappedPage*>(mapped.get())->mapping;
  if (mapping != nullptr) mapping->store(address_of(count), value);
  return mapping != nullptr;
}

std::shared_ptr<const GdrMapping> GpuCounts::map(uint64_t page) const {
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  Result<std::unique_ptr<const GdrMapping>> mapping = Error{"the GPU's context cannot be used"};
  if (current.is_set()) mapping = GdrMapping::make(gdr_, page, GdrMapping::kPage);
  if (mapping) return *std::move(mapping);
  log(LogLevel::info, LogArea::init, std::nullopt,
      fmt::format("counts of cuda:{} at {:#x} are set by a stream ({})", context_->ordinal(), page,
                  mapping.error().text()));
  return nullptr;
}

}  // namespace mscclc::cuda
