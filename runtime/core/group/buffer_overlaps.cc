#include "runtime/core/group/buffer_overlaps.h"

#include <algorithm>

#include "runtime/support/bytes.h"

namespace mscclc {
namespace {

const BufferOverlap* with(uint64_t other, const std::vector<BufferOverlap>& overlaps) {
  const auto found = std::ranges::find(overlaps, other, &BufferOverlap::other);
  return found == overlaps.end() ? nullptr : &*found;
}

bool is_on_all(const BufferOverlap& overlap,
               const std::vector<std::vector<BufferOverlap>>& by_rank) {
  return std::ranges::all_of(by_rank, [&](const auto& overlaps) {
    const BufferOverlap* const there = with(overlap.other, overlaps);
    return there != nullptr && *there == overlap;
  });
}

}  // namespace

std::optional<BufferOverlap> find_overlap(std::span<const uint8_t> buffer, uint64_t other,
                                          std::span<const uint8_t> other_buffer) {
  const auto begin = reinterpret_cast<uintptr_t>(buffer.data());
  const auto other_begin = reinterpret_cast<uintptr_t>(other_buffer.data());
  const uintptr_t from = std::max(begin, other_begin);
  const uintptr_t to = std::min(begin + buffer.size(), other_begin + other_buffer.size());
  if (from >= to) return std::nullopt;
  return BufferOverlap{other, from - begin, from - other_begin, to - from};
}

void encode(std::span<const BufferOverlap> overlaps, std::vector<uint8_t>& to) {
  ByteWriter writer(to);
  writer.number(static_cast<uint32_t>(overlaps.size()));
  for (const BufferOverlap& o : overlaps) {
    writer.number(o.other).number(o.from).number(o.other_from).number(o.bytes);
  }
}

bool decode(std::span<const uint8_t>& from, std::vector<BufferOverlap>& overlaps) {
  ByteReader reader(from);
  const auto count = reader.number<uint32_t>();
  for (uint32_t i = 0; i < count && reader.good(); ++i) {
    BufferOverlap& o = overlaps.emplace_back();
    o.other = reader.number<uint64_t>();
    o.from = reader.number<uint64_t>();
    o.other_from = reader.number<uint64_t>();
    o.bytes = reader.number<uint64_t>();
  }
  from = reader.rest();
  return reader.good();
}

void BufferOverlaps::add(uint64_t number, const std::vector<std::vector<BufferOverlap>>& by_rank) {
  const std::lock_guard lock(mutex_);
  for (uint32_t r = 0; r < by_rank.size(); ++r) {
    for (const BufferOverlap& overlap : by_rank[r]) {
      if (!is_on_all(overlap, by_rank)) overlaps_.emplace(number, OnRank{r, overlap});
    }
  }
}

void BufferOverlaps::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(overlaps_, [number](const auto& entry) {
    return entry.first == number || entry.second.overlap.other == number;
  });
}

std::optional<BufferOverlaps::Both> BufferOverlaps::find(uint32_t rank, uint64_t buffer,
                                                         uint64_t offset, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, entry] : overlaps_) {
    const BufferOverlap& o = entry.overlap;
    if (entry.rank != rank || (buffer != number && buffer != o.other)) continue;
    const bool is_new = buffer == number;
    const uint64_t from = is_new ? o.from : o.other_from;
    const uint64_t at = std::max(offset, from);
    if (at - offset >= std::max<uint64_t>(bytes, 1) || at - from >= o.bytes) continue;
    const uint64_t other_at = (is_new ? o.other_from : o.from) + (at - from);
    return Both{at, {is_new ? o.other : number, other_at}};
  }
  return std::nullopt;
}

}  // namespace mscclc
