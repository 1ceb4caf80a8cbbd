// Which calls this rank has launched, for comparing them with those of ranks that only lanes reach.
// Whenever its call is another one than the call before, a rank notes that on its lanes before
// anything of the call goes over them; a far end compares the note with its own call of that
// number, when both are known. A rank that waits for the others to load the plan of a call notes
// that on the lanes that it has used last.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/core/calls/call_board.h"

namespace mscclc {

/// Thread safety: from any thread.
class FarCalls {
 public:
  /// A rank's call, and that of this rank of the same number.
  struct Difference {
    uint32_t rank = 0;
    CallRecord own, other;
  };
  /// This rank's next call; numbers it. `changed`: it is not like the call before. nullopt: no rank
  /// has noted another one.
  [[nodiscard]] std::optional<Difference> next(CallRecord& call, bool& changed);
  /// What a rank has noted. nullopt: it is the same, or this rank has not come to it.
  [[nodiscard]] std::optional<Difference> noted(uint32_t rank, const CallRecord& other);
  /// This rank loads the plan of that number, with all others: what they note of that is known.
  void loads(uint32_t executable);
  uint64_t calls() const;  ///< of this rank

 private:
  mutable std::mutex mutex_;
  uint64_t calls_ = 0;
  uint32_t loaded_ = 0;
  /// Calls that were not like the one before, the last of them; older ones are not compared.
  std::deque<CallRecord> changes_;
  std::multimap<uint64_t, std::pair<uint32_t, CallRecord>> to_come_;  ///< by number of the call
};

}  // namespace mscclc
