#include "passes/assign/chain_cells.h"

#include <algorithm>

namespace mscclc::assign {
namespace {

constexpr uint64_t kMaxTouches = uint64_t{1} << 24;
/// Chunks take memory whether an op touches them or not, and programs of so many would take more by
/// their touches.
constexpr uint64_t kMaxCells = kMaxTouches;

/// At most two cells for each chunk (find_aliases).
uint64_t count_cells(const Program& program) {
  uint64_t chunks = 0;
  for (const Rank& rank : program.ranks) {
    for (const Buffer& b : rank.buffers) {
      chunks += b.kind == BufferKind::scratch ? b.chunks : uint64_t{2} * b.chunks;
    }
  }
  return chunks;
}

}  // namespace

bool ChainCells::collect(const Program& program) {
  if (count_cells(program) > kMaxCells) return false;
  number_cells(program);
  first_op_.assign(1, 0);
  op_cells_.assign(1, 0);
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const uint32_t count = static_cast<uint32_t>(program.ranks[r].ops.size());
    for (uint32_t i = 0; i < count; ++i) {
      add_op(program, r, i);
      if (cells_.size() > kMaxTouches) return false;
    }
    first_op_.push_back(first_op_.back() + count);
  }
  sort();
  return true;
}

void ChainCells::number_cells(const Program& program) {
  buffers_.assign(program.ranks.size(), {});
  shared_.assign(program.ranks.size(), {});
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    for (const Buffer& buffer : program.ranks[r].buffers) {
      buffers_[r].push_back(static_cast<uint32_t>(owners_.size()));
      owners_.insert(owners_.end(), buffer.chunks, r);
      callers_.insert(callers_.end(), buffer.chunks, buffer.kind != BufferKind::scratch);
    }
    find_aliases(program, r);
  }
}

void ChainCells::find_aliases(const Program& program, uint32_t rank) {
  const Contract& contract = program.contract;
  if (contract.in_place == InPlace::no || !contract.can_alias()) return;
  const auto alias = contract.alias(rank);
  if (!alias) return;
  const std::vector<Buffer>& buffers = program.ranks[rank].buffers;
  Shared& shared = shared_[rank];
  shared.any = true;
  shared.begin = static_cast<uint32_t>(owners_.size());
  shared.input_shift = alias->output_chunk;
  shared.output_shift = alias->input_chunk;
  const uint32_t chunks = std::max(buffers[kInput].chunks + alias->output_chunk,
                                   buffers[kOutput].chunks + alias->input_chunk);
  owners_.insert(owners_.end(), chunks, rank);
  callers_.insert(callers_.end(), chunks, false);
}

void ChainCells::add_op(const Program& program, uint32_t rank, uint32_t op) {
  const Op& self = program.ranks[rank].ops[op];
  accesses_.clear();
  append_accesses(program, rank, self, accesses_);
  const bool idle_in_place = is_copy_onto_itself(program, rank, self);
  for (const Access& access : accesses_) {
    const Shared& shared = shared_[access.rank];
    const bool twice = access.buffer < kFirstScratch && shared.any && !idle_in_place;
    for (uint32_t i = 0; i < access.count; ++i) {
      const uint32_t chunk = access.first + i;
      by_op_.push_back({rank, op, access.write, access.packets});
      cells_.push_back(buffers_[access.rank][access.buffer] + chunk);
      if (!twice) continue;
      const int64_t shift = access.buffer == kInput ? shared.input_shift : shared.output_shift;
      by_op_.push_back({rank, op, access.write, access.packets});
      cells_.push_back(shared.begin + static_cast<uint32_t>(chunk + shift));
    }
  }
  op_cells_.push_back(static_cast<uint32_t>(cells_.size()));
}

bool ChainCells::is_copy_onto_itself(const Program& program, uint32_t rank, const Op& op) const {
  if (op.kind != OpKind::copy || !shared_[rank].any) return false;
  const Operand &dst = program.dsts(op)[0], &src = program.srcs(op)[0];
  if (dst.buffer == src.buffer) return dst.first == src.first;
  if (dst.buffer != kOutput || src.buffer != kInput) return false;
  return src.first + shared_[rank].input_shift == dst.first + shared_[rank].output_shift;
}

void ChainCells::sort() {
  begin_.assign(owners_.size() + 1, 0);
  for (const uint32_t cell : cells_) ++begin_[cell + 1];
  for (size_t c = 1; c < begin_.size(); ++c) begin_[c] += begin_[c - 1];
  std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
  touches_.resize(cells_.size());
  for (size_t i = 0; i < cells_.size(); ++i) touches_[next[cells_[i]]++] = by_op_[i];
}

}  // namespace mscclc::assign
