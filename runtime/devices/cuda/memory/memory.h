// Memory that the runtime allocates on a GPU, and host memory that the GPU sees.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/device.h"
#include "runtime/devices/cuda/driver/stream.h"

namespace mscclc::cuda {

/// Memory that is mapped: allocated here, or a peer's.
class MappedMemory final : public Memory {
 public:
  /// The piece of `bytes` bytes, `offset` bytes into the mapping; `owner`, which may be null, is
  /// held for longer than the mapping.
  MappedMemory(std::shared_ptr<const Mapping> mapping, uint64_t offset, uint64_t bytes,
               SharedContext owner = nullptr)
      : owner_(std::move(owner)), mapping_(std::move(mapping)) {
    data_ = pointer_to(mapping_->address()) + offset;
    bytes_ = bytes;
  }

 private:
  const SharedContext owner_;
  const std::shared_ptr<const Mapping> mapping_;
};

/// Allocates memory that peers can map: by virtual memory management with the best handle types
/// that the GPU and the system take (descriptor and fabric, descriptor, none), or, where there is
/// no such management, as cudaMalloc does.
class Allocator {
 public:
  /// `multicast`: sizes are such that a switch can bind them.
  Allocator(SharedContext context, OwnStream& stream, bool multicast);
  bool multicast() const { return multicast_; }

  /// Zeros; whole granules after `bytes` bytes, at least one. nullptr: reported.
  [[nodiscard]] std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                                 Diagnostics& diagnostics);
  /// Can other machines map its memory? Tried out, as it needs a daemon and permissions, too.
  bool makes_fabric_handles() const;

 private:
  /// Reports an allocation that failed, with how much memory is left.
  [[nodiscard]] bool allocated(abi::Result result, const std::string& what, uint64_t bytes,
                               Diagnostics& diagnostics) const;
  [[nodiscard]] bool granule_of(const abi::AllocationProperties& properties, uint64_t& granule,
                                Diagnostics& diagnostics) const;
  [[nodiscard]] Mapping create(int handle_types, uint64_t bytes, const std::string& what,
                               abi::Result& result, Diagnostics& diagnostics) const;
  [[nodiscard]] std::unique_ptr<Memory> allocate_mapped(uint64_t bytes, const std::string& what,
                                                        Diagnostics& diagnostics);
  [[nodiscard]] std::unique_ptr<Memory> allocate_plain(uint64_t bytes, const std::string& what,
                                                       Diagnostics& diagnostics);

  const SharedContext context_;
  OwnStream& stream_;
  const bool multicast_;
  bool has_mappings_;
  std::vector<int> handle_types_;      ///< sets of types, best first
  std::atomic<size_t> first_working_;  ///< of them: what the system refused is not tried again
};

/// Memory as of cudaMalloc, zeros, which takes no more than it needs, for what no peer maps.
/// nullptr: reported.
std::unique_ptr<Memory> allocate_unshared(const SharedContext& context, OwnStream& stream,
                                          uint64_t bytes, const std::string& what,
                                          Diagnostics& diagnostics);

/// Host memory, zeros, pinned and mapped for all GPUs of the process at the host's addresses.
[[nodiscard]] std::unique_ptr<Memory> allocate_pinned(const SharedContext& context, uint64_t bytes,
                                                      const std::string& what,
                                                      Diagnostics& diagnostics);

}  // namespace mscclc::cuda
