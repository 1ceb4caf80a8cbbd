// How many calls are timed at once: by size, so that a batch takes milliseconds at most.
#pragma once

#include <cstdint>

#include "tools/bench/support/options.h"

namespace mscclc::bench {

struct Batch {
  uint32_t calls = 1;    ///< back to back, or captured in one graph
  uint32_t replays = 1;  ///< of the graph
  uint32_t units = 1;    ///< timed one by one, for p50 and p99
  uint32_t unit_calls = 1;
  uint32_t warmup = 2;  ///< batches
  bool graph = false, blocking = false;
  uint32_t total() const { return calls * (graph ? replays : 1); }
};

/// What `options` say, or by size: up to 1 MiB 50 calls in a graph, replayed 8 times, or 200 eager
/// ones; fewer above.
Batch batch_of(const Options& options, uint64_t bytes, bool graph);

}  // namespace mscclc::bench
