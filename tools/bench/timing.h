// How long a call takes on this rank: calls back to back on one stream, one by one or captured in a
// graph, between two events. Ranks start together, from a spinning barrier.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "tools/bench/contender.h"

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

/// Calls of one repeat. By size, so that a repeat takes milliseconds at most.
struct Batch {
  uint32_t calls = 1;    ///< back to back, or captured in one graph
  uint32_t replays = 1;  ///< of the graph
  uint32_t total() const { return calls * replays; }
  static Batch of(uint64_t bytes, bool graph);
};

/// One prepared contender on a stream.
class Timed {
 public:
  Timed(Contender& contender, cudaStream_t stream, Batch batch, bool graph)
      : contender_(contender), stream_(stream), batch_(batch), graph_(graph) {}
  ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  /// Captures the graph and runs a batch of each kind for warming up.
  bool start(Diagnostics& diagnostics);
  /// Microseconds of one call, mean over a batch.
  bool repeat(SpinBarrier& barrier, double& microseconds, Diagnostics& diagnostics);

 private:
  bool run(Diagnostics& diagnostics);

  Contender& contender_;
  const cudaStream_t stream_;
  const Batch batch_;
  const bool graph_;
  cudaGraphExec_t executable_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// True if a call of CUDA went well; else reports "cannot <attempt>: <what CUDA says>".
bool succeeded(cudaError_t result, const char* attempt, Diagnostics& diagnostics);

}  // namespace mscclc::bench
