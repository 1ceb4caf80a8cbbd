#include "plans/format/wire/message_bounds.h"

#include <algorithm>
#include <vector>

namespace mscclc {
namespace {

constexpr uint64_t kUnbounded = ~uint64_t{0};

uint64_t multiply(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kUnbounded : product;
}

/// Chunks of the buffer whose bytes MSCCL++'s executor compares with the bounds.
uint32_t judged_chunks(const Program& program, const Rank& rank) {
  const bool output = program.contract.kind == CollectiveKind::allgather;
  return rank.buffers[output ? kOutput : kInput].chunks;
}

uint64_t message_chunks(const Program& program) {
  uint64_t most = 0;
  for (const Rank& rank : program.ranks) {
    most = std::max<uint64_t>({most, rank.buffers[kInput].chunks, rank.buffers[kOutput].chunks});
  }
  return most;
}

/// The largest chunk of which 65535 rounds cover every pipeline.
uint64_t chunk_for_rounds(const Program& program, const std::vector<bool>& used) {
  uint64_t chunk = kUnbounded;
  for (size_t i = 0; i < used.size(); ++i) {
    const Loop& loop = program.loops[i];
    if (used[i]) chunk = std::min(chunk, multiply(65535, loop.unit) / std::max(loop.chunks, 1u));
  }
  return chunk;
}

/// Shared scratch: 64 MiB of data, half of it if doubled. Ops outside pipelines run beyond it;
/// those in pipelines wrap around in a chunk's part of it, where rounds would share bytes that the
/// proof takes for different ones.
uint64_t chunk_for_shared_scratch(const Program& program, const WireLayout& layout) {
  if (!program.launch.reuse_scratch) return kUnbounded;
  const uint64_t chunks = std::ranges::max(layout.scratch_chunks);
  return chunks == 0 ? kUnbounded : ((uint64_t{64} << 20) >> layout.double_scratch) / chunks;
}

/// A bound of `select sizes`, which counts the larger buffer, for the buffer that is compared.
uint64_t for_judged(const Program& program, uint64_t message, uint64_t judged) {
  const uint64_t chunks = message_chunks(program);
  if (message == kUnbounded || judged == chunks || chunks == 0) return message;
  return multiply(message / chunks, judged);
}

}  // namespace

uint64_t chunk_bytes(const Program& program, uint64_t message) {
  const uint64_t chunks = message_chunks(program);
  return chunks == 0 ? 0 : message / chunks + (message % chunks != 0 ? 1 : 0);
}

uint64_t largest_offset(const Program& program, const WireLayout& layout) {
  uint64_t most = message_chunks(program);
  const uint64_t per_chunk = (layout.packets ? 2 : 1) * (layout.double_scratch ? 2 : 1);
  for (const uint64_t chunks : layout.scratch_chunks) most = std::max(most, chunks * per_chunk);
  return most;
}

std::vector<bool> used_loops(const Program& program) {
  std::vector<bool> used(program.loops.size());
  if (used.empty()) return used;
  for (const Rank& rank : program.ranks) {
    for (const Op& op : rank.ops) {
      if (op.loop != kNone) used[op.loop] = true;
    }
  }
  return used;
}

Range wire_sizes(const Program& program, const WireLayout& layout,
                 const std::vector<bool>& used_loops) {
  Range sizes = program.select.sizes;
  if (program.foreign) return sizes;
  uint64_t judged = kUnbounded;
  for (const Rank& rank : program.ranks) {
    judged = std::min<uint64_t>(judged, judged_chunks(program, rank));
  }
  if (program.contract.kind == CollectiveKind::alltoallv) {
    sizes.min = 0;  // ranks differ; the largest message bounds each
  } else {
    sizes = {for_judged(program, sizes.min, judged), for_judged(program, sizes.max, judged)};
  }
  sizes.min = std::min<uint64_t>(sizes.min, 0x7fffffff);  // read as a signed 32-bit number
  uint64_t chunk =
      std::min(chunk_for_rounds(program, used_loops), chunk_for_shared_scratch(program, layout));
  const uint64_t offset = largest_offset(program, layout);
  if (offset > 0) chunk = std::min(chunk, 0xffffffff / offset);
  if (chunk != kUnbounded) chunk -= chunk % program.launch.align;
  if (judged > 0) sizes.max = std::min(sizes.max, multiply(chunk, judged));
  // That executor makes scratch for the largest message where it has room, whole chunks or not.
  // Sizes that do not divide are none that it takes.
  const uint64_t whole = multiply(judged, program.launch.align);
  const bool alike = program.contract.kind != CollectiveKind::alltoallv;
  if (alike && whole > 0 && sizes.max != kUnbounded) sizes.max -= sizes.max % whole;
  return sizes;
}

}  // namespace mscclc
