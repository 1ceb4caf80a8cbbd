#include "runtime/devices/cuda/memory/own_mappings.h"

#include "runtime/support/process/per_process.h"

namespace mscclc::cuda {

OwnMappings& OwnMappings::of_process() { return process_wide<OwnMappings>(); }

void OwnMappings::add(const std::shared_ptr<const Mapping>& mapping) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [](const auto& entry) { return entry.second.expired(); });
  all_[mapping->address()] = mapping;
}

std::shared_ptr<const Mapping> OwnMappings::at(abi::Address base) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(base);
  return found == all_.end() ? nullptr : found->second.lock();
}

}  // namespace mscclc::cuda
