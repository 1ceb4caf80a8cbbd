// Chunking: from chunks to bytes. The arithmetic that compiler, executor and runtime share.
#include <algorithm>

#include "ir/contract/contract.h"
#include "ir/support/precondition.h"

namespace mscclc {

BalancedSplit::BalancedSplit(uint64_t bytes, uint64_t n, uint32_t align)
    : bytes(bytes), align(align) {
  if (n == 0) return;
  const uint64_t granules = bytes / align + (bytes % align != 0 ? 1 : 0);
  q = granules / n;
  m = granules % n;
}

uint64_t BalancedSplit::begin(uint64_t i) const {
  return std::min((i * q + std::min(i, m)) * align, bytes);
}

Chunking::Chunking(const Contract& contract, uint64_t part_bytes, uint32_t align)
    : contract_(&contract),
      part_bytes_(part_bytes),
      align_(align),
      stored_(contract.columns * rows::fixed_bytes(contract.output_type)) {
  if (contract.kind == CollectiveKind::alltoallv) {
    prepare_ragged();
    return;
  }
  if (contract.kind == CollectiveKind::none || contract.kind == CollectiveKind::barrier) return;
  part_chunks_ = contract.part_chunks();
  const std::vector<uint32_t>* dims = &contract.chunks;
  if (contract.kind == CollectiveKind::custom) {
    const bool by_output = contract.chunk_count(Side::input, 0) < part_chunks_;
    dims = by_output ? &contract.output : &contract.input;
  }
  columns_ = dims->empty() ? 1 : dims->back();
  part_rows_ = dims->size() > 1 ? dims->front() : 1;
  rows_ = BalancedSplit(part_bytes, part_rows_, align);
  row_ = BalancedSplit(rows_.length(0), columns_, align);
  one_row_ = part_rows_ == 1 && part_chunks_ > 0;
  longest_ = row_.longest();  // the first row is the longest, and so is its first chunk
}

void Chunking::prepare_ragged() {
  const size_t ranks = contract_->ranks;
  for (const Side side : {Side::input, Side::output}) {
    std::vector<uint32_t>& before = units_before_[static_cast<size_t>(side)];
    before.reserve(ranks * (ranks + 1));
    for (size_t rank = 0; rank < ranks; ++rank) {
      uint32_t units = 0;
      for (size_t p = 0; p < ranks; ++p) {
        before.push_back(units);
        const size_t at = side == Side::input ? rank * ranks + p : p * ranks + rank;
        units += static_cast<uint32_t>(contract_->counts[at]);
      }
      before.push_back(units);
    }
  }
  part_chunks_ = contract_->part_chunks();
  int64_t last = 0;
  for (const int64_t count : contract_->counts) {
    if (count == last) continue;  // counts are often alike
    last = count;
    const uint64_t n = static_cast<uint64_t>(count);
    longest_ =
        std::max(longest_, BalancedSplit(n * part_bytes_, n * part_chunks_, align_).longest());
  }
}

Chunking::Position Chunking::ragged_position(Side side, uint32_t rank, uint32_t chunk) const {
  const std::vector<uint32_t>& before = units_before_[static_cast<size_t>(side)];
  const auto begin = before.begin() + size_t{rank} * (contract_->ranks + 1);
  // The last row that begins at or before the chunk: empty rows in front of it are skipped.
  const auto next = std::upper_bound(begin, begin + contract_->ranks, chunk / part_chunks_);
  const uint64_t first = *(next - 1), count = *next - first;
  return {first * part_bytes_, BalancedSplit(count * part_bytes_, count * part_chunks_, align_),
          static_cast<uint32_t>(chunk - first * part_chunks_)};
}

Chunking::Position Chunking::position(Side side, uint32_t rank, uint32_t chunk) const {
  if (contract_->kind == CollectiveKind::alltoallv) return ragged_position(side, rank, chunk);
  const InRow at = in_row(chunk);
  const uint32_t row = at.column / columns_;
  return {at.row_begin + rows_.begin(row), BalancedSplit(rows_.length(row), columns_, align_),
          at.column % columns_};
}

// Rows of one part's chunks, all alike: what most contracts are made of.
Chunking::InRow Chunking::in_row(uint32_t chunk) const {
  if (chunk < part_chunks_) return {0, chunk};
  const uint32_t part = chunk / part_chunks_;
  return {part * part_bytes_, chunk - part * part_chunks_};
}

uint64_t Chunking::offset(Side side, uint32_t rank, uint32_t chunk) const {
  precondition(rank < contract_->ranks);
  return as_stored(side, call_offset(side, rank, chunk));
}

uint64_t Chunking::rows_before(uint32_t rank, uint32_t chunk) const {
  return call_offset(Side::output, rank, chunk) / align_;
}

uint64_t Chunking::call_offset(Side side, uint32_t rank, uint32_t chunk) const {
  if (one_row_) {
    const InRow at = in_row(chunk);
    return at.row_begin + row_.begin(at.column);
  }
  const Position p = position(side, rank, chunk);
  return p.row_begin + p.split.begin(p.column);
}

uint64_t Chunking::length(Side side, uint32_t rank, uint32_t chunk) const {
  precondition(rank < contract_->ranks);
  if (one_row_) return as_stored(side, row_.length(in_row(chunk).column));
  const Position p = position(side, rank, chunk);
  return as_stored(side, p.split.length(p.column));
}

uint64_t Chunking::buffer_bytes(Side side, uint32_t rank) const {
  return as_stored(side, call_bytes(side, rank));
}

// The narrowest type has the most rows in so many bytes.
uint64_t Chunking::most_buffer_bytes(Side side, uint32_t rank) const {
  const uint64_t bytes = call_bytes(side, rank);
  if (side == Side::input || stored_ == 0) return bytes;
  return bytes / rows::kLeastBytesOfT * rows::fixed_bytes(contract_->output_type);
}

uint64_t Chunking::call_bytes(Side side, uint32_t rank) const {
  if (contract_->kind == CollectiveKind::alltoallv) {
    const size_t last = size_t{rank} * (contract_->ranks + 1) + contract_->ranks;
    return units_before_[static_cast<size_t>(side)][last] * part_bytes_;
  }
  const uint32_t chunks = contract_->chunk_count(side, rank);
  if (chunks == 0) return 0;
  if (chunks >= part_chunks_) return chunks / part_chunks_ * part_bytes_;
  return call_offset(side, rank, chunks);  // the smaller side of a custom contract
}

uint64_t Chunking::message_bytes() const {
  uint64_t most = 0;
  const bool by_rank = contract_->kind == CollectiveKind::alltoallv;
  const uint32_t first = by_rank ? 0 : contract_->root,
                 ranks = by_rank ? contract_->ranks : first + 1;
  for (uint32_t rank = first; rank < ranks; ++rank) {
    most = std::max({most, call_bytes(Side::input, rank), call_bytes(Side::output, rank)});
  }
  return most;
}

bool Chunking::even() const {
  return part_chunks_ == 0 || part_bytes_ % (uint64_t{align_} * part_chunks_) == 0;
}

uint64_t Chunking::parts_of_message(const Contract& contract) {
  return Chunking(contract, 1, 1).message_bytes();  // the parts are one byte each
}

uint64_t Chunking::part_for_message(const Contract& contract, uint64_t bytes, uint32_t element) {
  const uint64_t parts = parts_of_message(contract);
  return parts == 0 ? 0 : bytes / parts / element * element;
}

}  // namespace mscclc
