// A caller's selector of plans, which must not ask the registry itself.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "runtime/api/plan_registry.h"

namespace mscclc {

/// One that asked the registry would be asked forever. For several threads at a time.
class AskedSelector {
 public:
  explicit AskedSelector(PlanSelector select) : select_(std::move(select)) {}

  /// nullopt: it asks by itself.
  std::optional<Selection> ask(const PlanRequest& request) const {
    {
      const std::lock_guard lock(mutex_);
      if (!asking_.insert(std::this_thread::get_id()).second) return std::nullopt;
    }
    struct Leaving {
      const AskedSelector& of;
      ~Leaving() {
        const std::lock_guard lock(of.mutex_);
        of.asking_.erase(std::this_thread::get_id());
      }
    } const leaving{*this};
    return select_(request);
  }

 private:
  const PlanSelector select_;
  mutable std::mutex mutex_;
  mutable std::set<std::thread::id> asking_;  ///< threads that are in it
};

}  // namespace mscclc
