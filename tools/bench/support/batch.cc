#include "tools/bench/support/batch.h"

#include <algorithm>

namespace mscclc::bench {
namespace {

struct Row {
  uint64_t most_bytes;
  uint32_t graph_calls, replays, eager_calls, units;
};
constexpr uint64_t kMiB = 1 << 20;
constexpr Row kRows[] = {{kMiB, 50, 8, 200, 100},
                         {16 * kMiB, 10, 4, 60, 40},
                         {64 * kMiB, 10, 2, 20, 20},
                         {256 * kMiB, 10, 1, 10, 20},
                         {~uint64_t{0}, 4, 1, 6, 10}};
constexpr uint32_t kEagerUnit = 10;  // calls; fewer would measure the events

const Row& row_of(uint64_t bytes) {
  const Row* row = kRows;
  while (bytes > row->most_bytes) ++row;
  return *row;
}

}  // namespace

Batch batch_of(const Options& options, uint64_t bytes, bool graph) {
  const Row& row = row_of(bytes);
  Batch batch{.calls = graph ? row.graph_calls : row.eager_calls,
              .replays = row.replays,
              .units = row.units,
              .warmup = options.warmup,
              .graph = graph,
              .blocking = options.blocking};
  if (options.iterations > 0) batch.calls = options.iterations;
  if (options.replays > 0) batch.replays = options.replays;
  batch.unit_calls = graph ? batch.calls : std::min(batch.calls, kEagerUnit);
  if (options.aggregate > 0) batch.unit_calls = options.aggregate;
  return batch;
}

}  // namespace mscclc::bench
