// Kernels of plans that were compiled for the host, by name.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "executor/cuda/device/compiled.cuh"

namespace mscclc {

class KernelTable {
 public:
  /// A kernel with its arguments, for a thread to run.
  using Bound = std::function<void()>;
  /// Copies the arguments.
  using Bind = std::function<Bound(const device::LaunchPlan& plan, const void* arguments)>;

  template <class Arguments>
  void add(const std::string& name, void (*kernel)(device::LaunchPlan, Arguments)) {
    kernels_[name] = [kernel](const device::LaunchPlan& plan, const void* arguments) -> Bound {
      return [kernel, plan, own = *static_cast<const Arguments*>(arguments)] { kernel(plan, own); };
    };
  }
  /// nullptr: there is none.
  const Bind* find(const std::string& name) const {
    const auto found = kernels_.find(name);
    return found == kernels_.end() ? nullptr : &found->second;
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& [name, kernel] : kernels_) names.insert(name);
    return names;
  }

 private:
  std::map<std::string, Bind> kernels_;
};

/// All that were compiled (write.cc).
void add_all_kernels(KernelTable& table);

}  // namespace mscclc

/// kernel_digest(), shape and type.
#define MSCCLC_KERNEL(plan, shape, arithmetic) mscclc_##plan##_##shape##_##arithmetic
