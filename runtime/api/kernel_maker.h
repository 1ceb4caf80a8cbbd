// Who compiles kernels of plans (docs/compiled_kernels.md) where none were brought along: a device
// may have such a maker (Device::kernel_maker()). The runtime itself knows no compiler.
//
//   const auto ordered = maker.order({plan, digest, "sm_90", false});
//   if (const auto* kernels = ordered->result()) ...  // they are there, or will never be
#pragma once

#include <memory>
#include <string>

#include "ir/support/result.h"

namespace mscclc {

struct Program;

struct KernelOrder {
  std::shared_ptr<const Program> plan;
  std::string digest;        ///< the plan's, in hex
  std::string architecture;  ///< Device::architecture()
  bool wait = false;         ///< they are compiled at once, not in the background
};

/// Kernels that were compiled.
struct KernelImage {
  std::string image;  ///< for Device::load_kernels()
  std::string from;   ///< where they are from, for messages
};

/// Kernels that were ordered. Thread safety: any thread.
class OrderedKernels {
 public:
  virtual ~OrderedKernels() = default;
  /// nullptr: they are still to come. An error: there will be none. Costs a load; stays as it is.
  virtual const Result<KernelImage>* result() const = 0;
};

/// Thread safety: any thread.
class KernelMaker {
 public:
  virtual ~KernelMaker() = default;
  /// Kernels for all ranks of a plan. Does not compile on the caller's thread, unless it is to
  /// wait. Never nullptr. REQUIRES: the plan can have such kernels (CompiledShape::of()).
  virtual std::shared_ptr<const OrderedKernels> order(const KernelOrder& order) = 0;
  /// In a few words: what compiles them, and where they are kept; or why none are compiled.
  virtual std::string about() = 0;
};

}  // namespace mscclc
