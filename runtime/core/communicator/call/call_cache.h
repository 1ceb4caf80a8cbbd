// The calls that an executable has bound last, so that a caller that binds for every call (eager
// mode) pays once for a message that comes again with the same buffers. Bounded: a new call puts
// out the oldest. What nothing else holds any more is filled anew, with the memory that it has:
// binding then allocates nothing.
#pragma once

#include <array>
#include <memory>

#include "ir/program/program.h"
#include "runtime/api/communicator.h"

namespace mscclc {

/// Thread safety: one thread at a time, as the executable's.
class CallCache {
 public:
  /// The call that was kept for these options; nullptr: none.
  std::shared_ptr<BoundCall::State> find(const CallOptions& options) const {
    for (const Entry& entry : entries_) {
      if (entry.options == options && entry.call != nullptr) return entry.call;
    }
    return nullptr;
  }
  /// Puts out the oldest call: it may be filled anew. nullptr: it is held, or there is none.
  std::shared_ptr<BoundCall::State> take() {
    std::shared_ptr<BoundCall::State> oldest = std::move(entries_[next_].call);
    return oldest.use_count() == 1 ? oldest : nullptr;
  }
  /// REQUIRES: none is kept for these options.
  void keep(const CallOptions& options, const std::shared_ptr<BoundCall::State>& call) {
    entries_[next_] = {options, call};
    next_ = (next_ + 1) % entries_.size();
  }

 private:
  struct Entry {
    CallOptions options;
    std::shared_ptr<BoundCall::State> call;
  };

  std::array<Entry, 32> entries_;
  size_t next_ = 0;  ///< the oldest
};

}  // namespace mscclc
