// A rank's last calls, kept in case something goes wrong. Recording a call takes a few stores into
// a ring: no allocation, no lock.
//
// Thread safety: add() and ended() are for one thread at a time, which is the communicator's rule;
// calls() may be called by another thread meanwhile, and omits a call that is just being recorded.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ir/contract/contract.h"
#include "ir/program/program.h"

namespace mscclc {

/// A call as it was launched.
struct FlightCall {
  uint64_t number = 0;      ///< of the rank's launches, from 1
  uint32_t executable = 0;  ///< which; the same number on all ranks
  uint64_t call = 0;        ///< number among the executable's, from 1
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  uint64_t bytes = 0;
  uint64_t stream = 0;
  int64_t launched = 0;  ///< nanoseconds of the steady clock
  int64_t ended = 0;     ///< when the rank first knew that it had ended; 0: it does not know
};

/// What calls name by number.
struct FlightPlan {
  std::string name, hash;
  CollectiveKind kind = CollectiveKind::none;
};

class FlightRecorder {
 public:
  static constexpr size_t kCalls = 1000;

  /// A plan has been loaded. From any thread.
  void loaded(uint32_t executable, FlightPlan plan);
  /// A call has been launched; number and times are filled in here.
  void add(const FlightCall& call);
  /// All calls on a stream have ended.
  void ended(uint64_t stream);

  /// The calls that are kept, oldest first.
  std::vector<FlightCall> calls() const;
  /// What they name. From any thread.
  std::map<uint32_t, FlightPlan> plans() const;
  uint64_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  static constexpr size_t kWords = 6;
  /// A call as words. `version` is odd while they are written: a reader that sees the same even
  /// number before and after has read one call. Words are stored with release, and so come after
  /// it.
  struct Slot {
    std::atomic<uint64_t> version{0};
    std::array<std::atomic<uint64_t>, kWords> words{};
    std::atomic<int64_t> ended{0};
  };

  std::array<Slot, kCalls> slots_;
  std::atomic<uint64_t> count_{0};
  uint64_t known_ended_ = 0;  ///< all calls up to this number have ended
  mutable std::mutex mutex_;  ///< of plans_
  std::map<uint32_t, FlightPlan> plans_;
};

}  // namespace mscclc
