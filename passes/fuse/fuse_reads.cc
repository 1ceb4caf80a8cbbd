#include "passes/fuse/fuse_reads.h"

namespace mscclc::fusion {
namespace {

constexpr uint64_t kMaxChunks = uint64_t{1} << 26;

}  // namespace

uint32_t ScratchReads::count(uint32_t rank, const Operand& chunks) {
  asked_ = true;
  if (!may_count_) return kNone;
  if (!known_) read();
  if (counts_.empty()) return kNone;
  const uint32_t begin = first_[first_of_rank_[rank] + chunks.buffer] + chunks.first;
  for (uint32_t i = 1; i < chunks.count; ++i) {
    if (counts_[begin + i] != counts_[begin]) return kNone;
  }
  return counts_[begin];
}

void ScratchReads::change(uint32_t rank, const Operand& chunks, int32_t by) {
  const Change change{program_.owner_of(rank, chunks), chunks, by};
  if (chunks.buffer < kFirstScratch || by == 0) return;
  if (known_) {
    apply(change);
  } else {
    changes_.push_back(change);
  }
}

void ScratchReads::apply(const Change& change) {
  if (counts_.empty()) return;
  const Operand& o = change.chunks;
  const uint32_t begin = first_[first_of_rank_[change.rank] + o.buffer] + o.first;
  for (uint32_t i = 0; i < o.count; ++i) counts_[begin + i] += static_cast<uint32_t>(change.by);
}

void ScratchReads::read() {
  known_ = true;
  uint64_t chunks = 0;
  for (const Rank& rank : program_.ranks) {
    first_of_rank_.push_back(static_cast<uint32_t>(first_.size()));
    for (const Buffer& buffer : rank.buffers) {
      first_.push_back(static_cast<uint32_t>(chunks));
      chunks += buffer.chunks;
      if (chunks > kMaxChunks) return;
    }
  }
  counts_.assign(chunks, 0);
  std::vector<Access> accesses;
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    for (const Op& op : program_.ranks[r].ops) {
      accesses.clear();
      append_accesses(program_, r, op, accesses);
      for (const Access& a : accesses) {
        if (a.write || a.buffer < kFirstScratch) continue;
        const uint32_t begin = first_[first_of_rank_[a.rank] + a.buffer] + a.first;
        for (uint32_t i = 0; i < a.count; ++i) ++counts_[begin + i];
      }
    }
  }
  for (const Change& change : changes_) apply(change);
}

}  // namespace mscclc::fusion
