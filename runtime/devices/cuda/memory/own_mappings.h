// The mappings of memory that the runtime has allocated. Ranks of one process that share a GPU use
// one of these together, by its address: accesses of a GPU by two addresses have no order. So they
// share its ownership, too: a rank that ends a plan unmaps nothing under a peer whose last signals,
// or credits, are still on their way.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "runtime/devices/cuda/driver/vmm.h"

namespace mscclc::cuda {

/// Those of the process. Thread-safe.
class OwnMappings {
 public:
  static OwnMappings& of_process();

  void add(const std::shared_ptr<const Mapping>& mapping);
  /// nullptr: none begins there. Other memory is its owner's to keep.
  std::shared_ptr<const Mapping> at(abi::Address base);

 private:
  std::mutex mutex_;
  std::map<abi::Address, std::weak_ptr<const Mapping>> all_;
};

}  // namespace mscclc::cuda
