// CUDA's virtual memory management: references to physical allocations, and their mappings.
// A mapping keeps its allocation alive by itself, so no reference is held for long: code that
// creates, imports or retains one maps or exports it and releases it. Each handle value belongs to
// the process that got it, which releases it once; it never travels. (Descriptors and fabric
// handles travel; the importer gets a handle of its own for them.)
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/devices/cuda/driver/context.h"

namespace mscclc::cuda {

using SharedContext = std::shared_ptr<const PrimaryContext>;

/// Threads of a process take turns to change what refers to an allocation: to map and unmap it, to
/// retain and release its handle. Driver 580 frees memory of its own twice when two threads unmap
/// one allocation at once, each for its GPU (docs/design/devices.md, threads of one process).
class AllocationTurn {
 public:
  AllocationTurn();

 private:
  const std::lock_guard<std::mutex> lock_;
};

/// One reference to an allocation, or to a multicast object; gives it back.
class HandleReference {
 public:
  HandleReference() = default;
  HandleReference(SharedContext context, abi::Handle handle)
      : context_(std::move(context)), handle_(handle) {}
  HandleReference(HandleReference&& other) noexcept
      : context_(std::move(other.context_)), handle_(other.handle_) {
    other.context_ = nullptr;
  }
  HandleReference& operator=(HandleReference&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~HandleReference();

  explicit operator bool() const { return context_ != nullptr; }
  abi::Handle get() const { return handle_; }

  /// The allocation that is mapped at an address; empty: nothing of this kind is mapped there.
  /// False: reported.
  [[nodiscard]] static bool retain(const SharedContext& context, abi::Address address,
                                   HandleReference& reference, Diagnostics& diagnostics);
  /// What the allocation can be exported as (abi::HandleType bits).
  [[nodiscard]] bool handle_types(int& types, Diagnostics& diagnostics) const;

 private:
  SharedContext context_;
  abi::Handle handle_ = 0;
};

/// An address range backed by an allocation, readable and writable from one GPU.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Mapping();

  /// Maps the first `bytes` bytes (whole granules) of `handle` for the GPU of `context`. `what`
  /// names them in errors; `alignment` of the address, 0: any. Empty: reported.
  [[nodiscard]] static Mapping create(const SharedContext& context, abi::Handle handle,
                                      uint64_t bytes, const std::string& what,
                                      Diagnostics& diagnostics, uint64_t alignment = 0);
  explicit operator bool() const { return mapped_; }
  abi::Address address() const { return address_; }
  uint64_t bytes() const { return bytes_; }

 private:
  void swap(Mapping& other) noexcept;

  SharedContext context_;
  abi::Address address_ = 0;
  uint64_t bytes_ = 0;
  bool mapped_ = false;
};

/// `bytes` rounded up to whole granules; 0 if that does not fit into 63 bits.
uint64_t whole_granules(uint64_t bytes, uint64_t granule);

}  // namespace mscclc::cuda
