// How long a call takes on this rank: calls back to back on one stream, one by one or captured in a
// graph, between two events. Ranks start together, from a spinning barrier.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "tools/bench/measure/contender.h"
#include "tools/bench/measure/surroundings.h"
#include "tools/bench/support/batch.h"
#include "tools/bench/support/options.h"

namespace mscclc::bench {

/// Where all processes of a benchmark meet, in memory that they share.
class SpinBarrier {
 public:
  explicit SpinBarrier(uint32_t ranks) : ranks_(ranks) {}
  void meet();

 private:
  const uint32_t ranks_;
  std::atomic<uint32_t> arrived_{0};
  std::atomic<uint32_t> generation_{0};
};

/// How often a call's surroundings stand in front of it, of which the last ones go around it.
/// `early_`: they let the next launch begin early.
enum class Around : uint8_t { nothing, once, twice, early_once, early_twice };
inline constexpr uint32_t kArounds = 5;

/// So many of them, from the first on, are timed.
constexpr uint32_t count_arounds(const Options& options) {
  return options.between == 0 ? 1 : options.between_early ? kArounds : 3;
}

/// One prepared contender on a stream.
class Timed {
 public:
  /// `arounds`: count_arounds(); `surroundings`: where those are more than one.
  Timed(Contender& contender, cudaStream_t stream, const Batch& batch, uint32_t arounds,
        const std::optional<Surroundings>& surroundings)
      : contender_(contender),
        stream_(stream),
        batch_(batch),
        arounds_(arounds),
        surroundings_(surroundings) {}
  ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  /// Captures the graphs and runs batches for warming up.
  [[nodiscard]] bool start(Diagnostics& diagnostics);
  /// Microseconds of one call with all that is around it, mean over a batch.
  [[nodiscard]] bool repeat(SpinBarrier& barrier, Around around, double& microseconds,
                            Diagnostics& diagnostics);
  /// Microseconds of one call in each of the batch's units, back to back with an event between
  /// them.
  [[nodiscard]] bool units(SpinBarrier& barrier, std::vector<double>& microseconds,
                           Diagnostics& diagnostics);
  /// Starts one unit: calls back to back, in a graph if that is what is timed.
  [[nodiscard]] bool run_unit(Diagnostics& diagnostics);
  /// Starts a batch.
  [[nodiscard]] bool run(Around around, Diagnostics& diagnostics);

 private:
  [[nodiscard]] bool launch_one(Around around, Diagnostics& diagnostics);
  [[nodiscard]] bool launch_call(bool previous_allows_early, Diagnostics& diagnostics);
  [[nodiscard]] bool launch(uint32_t calls, Around around, Diagnostics& diagnostics);
  [[nodiscard]] bool capture(uint32_t calls, Around around, cudaGraphExec_t& made,
                             Diagnostics& diagnostics);
  [[nodiscard]] bool replay(cudaGraphExec_t graph, Diagnostics& diagnostics);
  [[nodiscard]] bool wait_if_blocking(Diagnostics& diagnostics);

  Contender& contender_;
  const cudaStream_t stream_;
  const Batch batch_;
  const uint32_t arounds_;
  const std::optional<Surroundings> surroundings_;
  cudaGraphExec_t graphs_[kArounds] = {};  ///< of a batch's calls, by Around
  cudaGraphExec_t unit_graph_ = nullptr;   ///< of a unit's, where those are others
  std::vector<cudaEvent_t> events_;
};

/// True if a call of CUDA went well; else reports "cannot <attempt>: <what CUDA says>".
[[nodiscard]] bool succeeded(cudaError_t result, const char* attempt, Diagnostics& diagnostics);

}  // namespace mscclc::bench
