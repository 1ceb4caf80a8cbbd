// Ranges of NVTX: what profilers (Nsight Systems, for one) show of a thread's calls. A profiler
// puts its library into the process by NVTX_INJECTION64_PATH, and that library says which functions
// it wants to be called. Here is the side of the application, with no header of NVIDIA's.
//
//   static const NvtxDomain domain("NCCL");
//   const NvtxRange range(domain, "ncclAllReduce", bytes);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/support/result.h"

namespace mscclc {

/// A profiler's group of ranges. Never destroyed before the ranges in it. Thread safety: an
/// immutable value.
class NvtxDomain {
 public:
  /// No ranges in it are shown.
  NvtxDomain() = default;
  /// Loads the profiler's library if that has not been done.
  explicit NvtxDomain(const char* name);

 private:
  friend class NvtxRange;
  void* handle_ = nullptr;  ///< nullptr: nothing is reported
};

/// Why nothing is reported to the profiler that NVTX_INJECTION64_PATH names, where a domain has
/// looked for it. NVTX itself says nothing.
std::optional<Error> nvtx_problem();

/// A range of this thread while it lives. Costs a load where there is no profiler.
class NvtxRange {
 public:
  /// `name` lives as long. `bytes`: its payload; nullopt: none.
  NvtxRange(const NvtxDomain& domain, const char* name, std::optional<uint64_t> bytes)
      : domain_(domain.handle_) {
    if (domain_ != nullptr) push(name, bytes);
  }
  ~NvtxRange() {
    if (domain_ != nullptr) pop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  void push(const char* name, std::optional<uint64_t> bytes) const;
  void pop() const;

  void* const domain_;
};

}  // namespace mscclc
