// One row of hidden values, added up by name inside batches of every number of rows: whether its
// bits depend on the batch. On any device, eager or by graphs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/api/collectives.h"

namespace mscclc::testing {

/// Floats whose exponents lie close together, so that their sums are rounded; the same for a seed.
std::vector<uint8_t> random_floats(uint64_t count, uint32_t element_bytes, uint64_t seed);

struct RowBatches {
  Dtype dtype = Dtype::bf16;
  uint64_t hidden = 512;                            ///< elements of a row
  uint64_t most_rows = 512;                         ///< of a batch
  uint64_t step = 1;                                ///< from one number of rows to the next
  CollectiveKind kind = CollectiveKind::allreduce;  ///< or reduce or reducescatter
};

/// Puts calls on a stream, and lets them run: at once, or by a graph.
using PlayCalls = std::function<bool(StreamHandle stream,
                                     const std::function<bool(Diagnostics&)>& calls, Diagnostics&)>;

/// Collective. Adds up batches of 1, 1 + step, … rows, with the row somewhere inside (or, of a
/// reduce-scatter, in each rank's batch), in turn in and out of place, in registered memory or not,
/// at multiples of 16 bytes or not. "" if the row comes out with the bits that it has alone, on all
/// ranks; `batches` counts them, and `bits`, if it is there, gets these.
std::string check_rows(Collectives& collectives, const RowBatches& rows, const PlayCalls& play,
                       uint64_t& batches, std::vector<uint8_t>* bits = nullptr);

}  // namespace mscclc::testing
