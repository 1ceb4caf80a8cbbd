// The numbers of the chunks of a system: chunks that are the same memory, in place or because plans
// share their scratch, have one number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/precondition.h"
#include "passes/prove/model/joint.h"

namespace mscclc::proof {

/// The number of a chunk that has none.
constexpr uint64_t kNoChunk = ~uint64_t{0};

class ChunkNumbers {
 public:
  /// Of the first `ranks` ranks of a program that consists of `parts`. `in_place`: the caller's
  /// buffers of those that may run so lie in one place. The program must outlive it.
  ChunkNumbers(const Program& program, const std::vector<Part>& parts, uint32_t ranks,
               bool in_place);

  /// kNoChunk only after keep(). REQUIRES: rank < ranks.
  uint64_t number(uint32_t rank, uint32_t buffer, uint32_t chunk, uint32_t call) const {
    precondition(rank < first_buffer_.size());
    const Buffer& b = program_.ranks[rank].buffers[buffer];
    const uint64_t copy = b.copies > 1 ? call % b.copies : 0;
    const uint64_t number = bases_[first_buffer_[rank] + buffer] + copy * b.chunks + chunk;
    return kept_.empty() ? number : kept_[number] == kNone ? kNoChunk : kept_[number];
  }
  uint64_t count() const { return count_; }
  /// Numbers anew, from 0, the chunks for which `kept` is true (by their numbers so far); the
  /// others have none. So tables of chunks are as small as what a few blocks touch. REQUIRES: fewer
  /// than 2^32 - 1 are kept.
  void keep(const std::vector<bool>& kept);
  /// The least common multiple of all numbers of copies.
  uint32_t period() const { return period_; }

 private:
  void place_buffers(uint32_t rank, const std::vector<Part>& parts, bool in_place);
  void place_callers(uint32_t rank, const Part& part, bool in_place);

  const Program& program_;
  std::vector<uint32_t> first_buffer_;  ///< by rank: in bases_
  std::vector<uint64_t> bases_;
  std::vector<uint32_t> kept_;  ///< by number before keep(); kNone: it has none now
  uint64_t count_ = 0;
  uint32_t period_ = 1;
};

/// Do these plans have their scratch at a rank in one place?
bool share_scratch(uint32_t rank, const Part& a, const Part& b);
/// And is it laid out alike there, chunk by chunk?
bool share_chunks(uint32_t rank, const Part& a, const Part& b);

}  // namespace mscclc::proof
