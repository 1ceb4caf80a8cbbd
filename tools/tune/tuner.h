// Looks for the fastest plan of each size: from what the library picks and what the cost model
// thinks well of, one changed parameter after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "tools/measure/call_timer.h"
#include "tools/measure/turns.h"
#include "tools/tune/candidate.h"
#include "tools/tune/trial_log.h"

namespace mscclc::tune {

struct TuneOptions {
  uint32_t trials = 24;  ///< of a size, at most; the library's own pick is one of them
  /// Of the fastest with the library's own pick and with NCCL, in turn, at the end.
  uint32_t comparisons = kComparisons;
  double prune = 2;     ///< what is predicted to take so many times the best is not tried
  double gain = kGain;  ///< what is faster by less is not
};

/// A plan that was measured for a size.
struct Measured {
  LibraryRow row;  ///< its choice, and what calls that may serve
  double ns = 0;
};

/// What a plan takes, in nanoseconds: as the cost model has it, and as it was timed.
struct Tried {
  double predicted = 0, ns = 0;
};

/// What came of a size.
struct SizeResult {
  LibraryCall call;
  Measured library;    ///< what the library picks
  Measured best;       ///< the same, if nothing is faster
  double nccl_ns = 0;  ///< 0: NCCL was not timed
  uint32_t trials = 0;
  std::vector<Tried> tried;        ///< those of the trials that were good
  std::vector<std::string> wrong;  ///< plans, or NCCL, whose results were not right
};

class Tuner {
 public:
  Tuner(CallTimer& timer, const LibraryTable& table, Plans& plans, const Limits& limits,
        TrialLog& log, const TuneOptions& options)
      : timer_(timer),
        table_(table),
        plans_(plans),
        limits_(limits),
        log_(log),
        options_(options) {}

  /// The sizes of a collective, smallest first; `each` is called before each of them. nullopt: a
  /// rank hangs or was lost, or the library has nothing for the call: reported; or the log cannot
  /// be written: it says so.
  [[nodiscard]] std::optional<std::vector<SizeResult>> tune(
      LibraryCall call, const std::vector<uint64_t>& sizes,
      const std::function<void(const LibraryCall&)>& each, Diagnostics& diagnostics);

 private:
  struct Search;
  struct Turn;

  std::optional<SizeResult> tune_size(const LibraryCall& call, const LibraryRow* last,
                                      Diagnostics& diagnostics);
  const LibraryRow* picked(const LibraryCall& call);
  LibraryRow descend(LibraryRow row, const LibraryCall& call);
  std::vector<LibraryRow> starts(const LibraryCall& call, const LibraryRow* last);
  std::optional<Trial> try_out(const LibraryCall& call, const Turn& turn, uint32_t pass,
                               Diagnostics& diagnostics);
  bool try_all(Search& search, const std::vector<LibraryRow>& rows, Diagnostics& diagnostics);
  bool take_turns(Search& search, std::vector<Turn>& turns, Diagnostics& diagnostics);
  bool compare(Search& search, Diagnostics& diagnostics);

  CallTimer& timer_;
  const LibraryTable& table_;
  Plans& plans_;
  const Limits limits_;
  TrialLog& log_;
  const TuneOptions options_;
};

}  // namespace mscclc::tune
