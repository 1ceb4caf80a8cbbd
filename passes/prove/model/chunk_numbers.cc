#include "passes/prove/model/chunk_numbers.h"

#include <algorithm>
#include <numeric>

#include "ir/program/scratch_layout.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {

ChunkNumbers::ChunkNumbers(const Program& program, const std::vector<Part>& parts, uint32_t ranks,
                           bool in_place)
    : program_(program) {
  for (uint32_t r = 0; r < ranks; ++r) {
    first_buffer_.push_back(static_cast<uint32_t>(bases_.size()));
    place_buffers(r, parts, in_place);
  }
}

void ChunkNumbers::place_buffers(uint32_t r, const std::vector<Part>& parts, bool in_place) {
  for (const Buffer& buffer : program_.ranks[r].buffers) {
    bases_.push_back(count_);
    count_ += uint64_t{buffer.chunks} * buffer.copies;
    period_ = std::lcm(period_, buffer.copies);
  }
  for (const Part& part : parts) {
    if (!part.has(r)) continue;
    place_callers(r, part, in_place);
    for (const Part& earlier : parts) {
      if (&earlier == &part) break;
      if (!share_chunks(r, earlier, part)) continue;
      const size_t scratch = part.rank(r).buffers.size() - kFirstScratch;
      std::copy_n(&bases_[first_buffer_[r] + earlier.first_scratch[r]], scratch,
                  &bases_[first_buffer_[r] + part.first_scratch[r]]);
      break;
    }
  }
}

/// In place, both of the caller's buffers lie in the larger one.
void ChunkNumbers::place_callers(uint32_t r, const Part& part, bool in_place) {
  const Contract& contract = part.contract();
  uint64_t* bases = &bases_[first_buffer_[r] + part.input];
  const Rank& rank = part.rank(r);
  const bool together =
      contract.in_place == InPlace::yes || (in_place && contract.in_place != InPlace::no);
  const auto alias = together ? contract.alias(part.local[r]) : std::nullopt;
  if (!alias) return;
  if (rank.buffers[kOutput].chunks >= rank.buffers[kInput].chunks) {
    bases[kInput] = bases[kOutput] + alias->output_chunk;
  } else {
    bases[kOutput] = bases[kInput] + alias->input_chunk;
  }
}

void ChunkNumbers::keep(const std::vector<bool>& kept) {
  kept_.assign(kept.size(), kNone);
  count_ = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) kept_[i] = static_cast<uint32_t>(count_++);
  }
}

bool share_scratch(uint32_t rank, const Part& a, const Part& b) {
  return a.has(rank) && b.has(rank) && a.program->launch.reuse_scratch &&
         b.program->launch.reuse_scratch;
}

bool share_chunks(uint32_t rank, const Part& a, const Part& b) {
  if (!share_scratch(rank, a, b)) return false;
  return premise(Premise::chunk_on_chunk,
                 same_scratch(*a.program, a.local[rank], *b.program, b.local[rank]));
}

}  // namespace mscclc::proof
