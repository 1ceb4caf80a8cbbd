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
    const Asking now(*this);
    return now.is_first() ? std::optional(select_(request)) : std::nullopt;
  }

 private:
  /// While one lives, a thread is in the selector.
  class Asking {
   public:
    explicit Asking(const AskedSelector& of) : of_(of) {
      const std::lock_guard lock(of_.mutex_);
      first_ = of_.asking_.insert(std::this_thread::get_id()).second;
    }
    ~Asking() {
      const std::lock_guard lock(of_.mutex_);
      if (first_) of_.asking_.erase(std::this_thread::get_id());
    }
    bool is_first() const { return first_; }

   private:
    const AskedSelector& of_;
    bool first_ = false;
  };

  const PlanSelector select_;
  mutable std::mutex mutex_;
  mutable std::set<std::thread::id> asking_;
};

}  // namespace mscclc
