// Launches the calls of a plan that is loaded.
#pragma once

#include <cstdint>

#include "runtime/api/communicator.h"
#include "runtime/core/communicator/call/call_facts.h"
#include "runtime/core/group/group.h"

namespace mscclc {

/// Thread safety: one thread at a time, the communicator's.
class Launcher {
 public:
  explicit Launcher(Executable::State& executable);

  /// The call becomes one of the plan's kernels, where these have come since it was bound.
  [[nodiscard]] bool launch(BoundCall::State& call, StreamHandle stream, Diagnostics& diagnostics);
  /// Loads Executable::State::kernels_to_come, if they have come. REQUIRES: as load() of the
  /// communicator.
  void take_over_kernels();
  /// Has there been one?
  bool has_launched() const { return launches_ > 0; }
  /// Executable::stamp_launches().
  void stamp(uint64_t* rows, uint32_t words) {
    stamps_ = rows;
    stamp_words_ = words;
  }

 private:
  /// The same between two calls, if none runs.
  void take_over_in_pause();
  /// A call that was bound before the kernels came.
  void renew(BoundCall::State& call);
  /// Puts copies and launch of a call on a stream.
  [[nodiscard]] bool enqueue(const BoundCall::State& call, StreamHandle stream,
                             Diagnostics& diagnostics);
  /// Starts the kernel of a call.
  [[nodiscard]] bool start(const BoundCall::State& call, StreamHandle stream,
                           Diagnostics& diagnostics);
  /// Compares it with the calls of the other ranks. False: reported.
  [[nodiscard]] bool same_call(const BoundCall::State& call, Diagnostics& diagnostics);
  [[nodiscard]] bool same_on_all_ranks(const CallFacts& facts, Diagnostics& diagnostics) const;
  [[nodiscard]] bool same_far_calls(const CallRecord& record, Diagnostics& diagnostics);
  void note(const BoundCall::State& call, StreamHandle stream);

  Executable::State& x_;
  RankGroup& group_;
  uint64_t launches_ = 0;
  uint64_t* stamps_ = nullptr;  ///< stamp()
  uint32_t stamp_words_ = 0;
};

}  // namespace mscclc
