// The calls that an executable has bound last, so that a caller that binds for every call (eager
// mode) pays once for a message that comes again with the same buffers. Bounded: a new call puts
// out the oldest. What nothing else holds any more is filled anew, with the memory that it has:
// binding then allocates nothing.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/precondition.h"
#include "runtime/api/communicator.h"
#include "runtime/core/communicator/call/call_facts.h"

namespace mscclc {

/// Thread safety: one thread at a time, as the executable's.
class CallCache {
 public:
  /// What was kept for a call that binds alike; nullptr: nothing.
  std::shared_ptr<BoundCall::State> find(const CollectiveCall& call) const {
    const auto counts = digest_of_counts(call.counts);
    for (const KeptCall& kept : kept_) {
      if (kept.bound == nullptr || !bind_alike(kept.call, call) || kept.counts != counts) continue;
      if (std::ranges::equal(kept.externals, call.externals) &&
          std::ranges::equal(kept.flags, call.flags)) {
        return kept.bound;
      }
    }
    return nullptr;
  }
  /// Puts out the oldest call: it may be filled anew. nullptr: it is held, or there is none.
  std::shared_ptr<BoundCall::State> take() {
    std::shared_ptr<BoundCall::State> oldest = std::move(kept_[next_].bound);
    return oldest.use_count() == 1 ? oldest : nullptr;
  }
  /// REQUIRES: nothing is kept for it, and its externals and flags are those of `plan`, which
  /// outlives this.
  void keep(const CollectiveCall& call, const Program& plan,
            const std::shared_ptr<BoundCall::State>& bound) {
    precondition([&] { return find(call) == nullptr; });
    KeptCall& kept = kept_[next_];
    kept.call = call;
    kept.bound = bound;
    kept.counts = digest_of_counts(call.counts);
    kept.externals.assign(call.externals.begin(), call.externals.end());
    for (CallExternal& external : kept.externals) {  // names are the caller's
      external.name = std::ranges::find(plan.externals, external.name, &rows::External::name)->name;
    }
    kept.flags.assign(call.flags.begin(), call.flags.end());
    for (CallFlags& flags : kept.flags) {
      flags.name = std::ranges::find(plan.flags, flags.name, &FlagArray::name)->name;
    }
    kept.call.externals = {};
    kept.call.flags = {};
    kept.call.counts = kept.call.input_offsets = kept.call.output_offsets = {};  // the caller's
    kept.call.tag = {};
    next_ = (next_ + 1) % kept_.size();
  }

 private:
  struct KeptCall {
    CollectiveCall call;
    std::shared_ptr<BoundCall::State> bound;
    std::array<uint8_t, 3> counts = {};  ///< their digest
    std::vector<CallExternal> externals;
    std::vector<CallFlags> flags;
  };
  /// What bind() goes by.
  static bool bind_alike(const CollectiveCall& a, const CollectiveCall& b) {
    return a.bytes == b.bytes && a.input == b.input && a.output == b.output && a.dtype == b.dtype &&
           a.op == b.op && a.accumulate == b.accumulate && a.kind == b.kind &&
           a.row_pitch == b.row_pitch && a.registered == b.registered &&
           a.previous_allows_early == b.previous_allows_early && a.any_order == b.any_order &&
           a.budget == b.budget && a.launch_order == b.launch_order;
  }

  std::array<KeptCall, 32> kept_;
  size_t next_ = 0;  ///< the oldest
};

}  // namespace mscclc
