// Which calls the ranks of a machine have launched: memory of the host that they share, so that a
// rank whose call is another one than its peers' is found out before it launches it.
//
// Every rank counts its calls there, and writes down what a call is whenever that is not what the
// call before was. Of two ranks that disagree on a call the one that comes to it last sees what the
// other has written: each says what it does before it looks at what the others do. Blocks write to
// a peer's input or output only after that peer has entered the call (docs/design/proofs.md), so a
// call that its rank does not launch has none of its buffers written.
//
// A rank that makes the same call again and again writes one word and reads one.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/fd.h"

namespace mscclc {

/// What of a call must be the same on all ranks, as numbers.
struct CallRecord {
  uint64_t call = 0;  ///< number of the first such call in the communicator, from 1
  uint64_t bytes = 0, row_pitch = 0;
  std::array<uint64_t, 2> offset = {};  ///< by side, of symmetric calls: in the registered buffer
  std::array<uint32_t, 2> buffer = {};  ///< by side: 1 + its number; 0: any rank's own
  uint32_t bind = 0;                    ///< number of the bind, if ranks did it together; or 0
  uint32_t executable = 0;              ///< number of its load
  uint8_t dtype = 0, reduce = 0, accumulate = 0;
  uint8_t placement = 0;  ///< 0: the rank's buffers cannot lie in each other, so it agrees with any
  uint8_t is_load = 0;    ///< 1: only the plan is known, and still to be loaded
  std::array<uint8_t, 3> counts = {};  ///< digest of an alltoallv's (digest_of_counts())

  /// The same in all except the number.
  bool is_same(const CallRecord& other) const;
  /// True if one rank may make this call where another makes that, whatever their numbers.
  bool agrees_with(const CallRecord& other) const;
};
static_assert(sizeof(CallRecord) == 64);

/// A wait for a rank ends where that has made no further call for so long.
struct RankPatience {
  using Clock = std::chrono::steady_clock;
  const Clock::duration most;
  std::optional<Clock::time_point> since = {};  ///< it has made no further call; or first asked
  std::pair<uint32_t, uint64_t> at = {};        ///< the rank, and its calls then
  bool is_over(uint32_t rank, uint64_t calls, Clock::time_point now) {
    if (!since || at != std::pair(rank, calls)) since = now, at = {rank, calls};
    return now - *since >= most;
  }
};

/// Thread safety: next() is for one thread at a time; each rank has a board of its own.
class CallBoard {
 public:
  /// A rank may be so many different calls ahead of another.
  static constexpr uint64_t kRoom = 4096;

  /// Memory for so many ranks, as a descriptor for the others. Invalid: reported (out-of-memory).
  [[nodiscard]] static Fd make_memory(size_t ranks, Diagnostics& diagnostics);
  static uint64_t memory_bytes(size_t ranks);
  /// Maps it for the rank ranks[own]. nullptr: reported (bad-handle).
  [[nodiscard]] static std::unique_ptr<CallBoard> open(const Fd& memory,
                                                       std::vector<uint32_t> ranks, size_t own,
                                                       Diagnostics& diagnostics);
  ~CallBoard();
  CallBoard(const CallBoard&) = delete;
  CallBoard& operator=(const CallBoard&) = delete;

  /// Why this rank must not launch its call.
  struct Refusal {
    uint32_t rank = 0;  ///< the other one
    /// What that has launched; nullopt: this rank would be more than kRoom different calls ahead.
    std::optional<CallRecord> other;
    uint64_t calls = 0;  ///< of the other, so far
  };
  /// Whether to wait no longer for a rank that is too far behind, and has made so many calls.
  using Over = std::function<bool(uint32_t rank, uint64_t calls)>;
  /// This rank's next call; numbers it. nullopt: no rank has said that it is another one. Waits
  /// only for a rank that is too far behind.
  [[nodiscard]] std::optional<Refusal> next(CallRecord& call, const Over& over);
  /// This rank waits for the others to load a plan (CallRecord::is_load) for a call that is to
  /// come, which `call` numbers. A rank that has come to that call by another plan will not. As
  /// next().
  [[nodiscard]] std::optional<Refusal> begin_load(const CallRecord& call, const Over& over);
  void end_load();
  uint64_t calls() const { return calls_; }  ///< of this rank

 private:
  struct Line;
  struct Shared;
  CallBoard(uint8_t* memory, std::vector<uint32_t> ranks, size_t own);
  Line& line(size_t rank) const;
  CallRecord* records(size_t rank) const;
  std::optional<Refusal> publish(const CallRecord& call, const Over& over);
  std::optional<size_t> find_too_far_behind(uint64_t change) const;
  std::optional<Refusal> look(uint64_t call, bool changed);
  std::optional<Refusal> compare(uint64_t call);
  /// What a rank has said of a call; nullopt: it has not come to it.
  std::optional<CallRecord> said_by(size_t rank, uint64_t call);

  uint8_t* const memory_;
  const std::vector<uint32_t> ranks_;
  const size_t own_;
  CallRecord latest_;
  uint64_t calls_ = 0;
  uint64_t changes_ = 0;               ///< of this rank
  uint64_t seen_ = 0;                  ///< changes of all ranks by the last compare()
  uint64_t next_look_ = ~uint64_t{0};  ///< a call for which another rank has already changed
};

}  // namespace mscclc
