// The message sizes that a plan makes MSCCL++'s executor accept. That executor keeps offsets in
// 32 bits, counts rounds of a pipeline in 16 and gives shared scratch a fixed size, and checks none
// of it: so the bounds in the plan also keep it away from where it would go wrong.
#pragma once

#include <cstdint>

#include "ir/program/program.h"
#include "plans/format/wire/wire_layout.h"

namespace mscclc {

/// Bytes of a chunk when the larger of input and output has `message` bytes, evenly cut.
uint64_t chunk_bytes(const Program& program, uint64_t message);

/// The largest offset into any buffer of any rank, counted in chunks.
uint64_t largest_offset(const Program& program, const WireLayout& layout);

/// `min_message_size` and `max_message_size` of a plan. A program read from a plan of MSCCL++ keeps
/// those it had.
/// `used_loops`: see used_loops().
Range wire_sizes(const Program& program, const WireLayout& layout,
                 const std::vector<bool>& used_loops);
/// By pipeline: does an op stand in it?
std::vector<bool> used_loops(const Program& program);

}  // namespace mscclc
