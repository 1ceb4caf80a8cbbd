#include "passes/order/access_history.h"

namespace mscclc::order {

void AccessHistory::start(const Rank& rank, uint32_t id) {
  rank_ = id;
  used_ = 0;
  touches_.clear();
  base_.clear();
  const size_t large = 4096 + 16 * rank.ops.size();
  uint32_t chunks = 0;
  for (const Buffer& buffer : rank.buffers) {
    base_.push_back(buffer.chunks > large ? kNone : chunks);
    if (buffer.chunks <= large) chunks += buffer.chunks;
  }
  cells_.assign(chunks, {});
}

uint32_t AccessHistory::far_cell(uint64_t key) {
  if (2 * (used_ + 1) > slots_.size()) grow();
  size_t at = slot_of(key);
  while (slots_[at].rank == rank_) {
    if (slots_[at].key == key) return slots_[at].cell;
    at = (at + 1) & (slots_.size() - 1);
  }
  ++used_;
  slots_[at] = {key, rank_, static_cast<uint32_t>(cells_.size())};
  cells_.push_back({});
  return slots_[at].cell;
}

uint32_t AccessHistory::find_far(uint64_t key) const {
  size_t at = slot_of(key);
  while (slots_[at].rank == rank_) {
    if (slots_[at].key == key) return slots_[at].cell;
    at = (at + 1) & (slots_.size() - 1);
  }
  return kNone;
}

void AccessHistory::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  --shift_;
  for (const Slot& slot : old) {
    if (slot.rank != rank_) continue;
    size_t at = slot_of(slot.key);
    while (slots_[at].rank == rank_) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

}  // namespace mscclc::order
