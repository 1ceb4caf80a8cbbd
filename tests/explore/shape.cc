#include "tests/explore/shape.h"

#include <algorithm>
#include <numeric>

namespace mscclc::explorer {
namespace {

constexpr uint64_t kPiece = 16;

uint64_t divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

bool has_lines(const Program& program) {
  return std::ranges::any_of(program.ranks, [](const Rank& rank) {
    return std::ranges::any_of(rank.buffers,
                               [](const Buffer& b) { return info(b.packets).data % kPiece != 0; });
  });
}

/// Into so many parts some op is cut, or a multiple.
uint64_t parts_of(const Program& program) {
  uint64_t parts = 1;
  for (const Rank& rank : program.ranks) {
    for (const Op& op : rank.ops) {
      if (op.parts > 1) parts = std::lcm(parts, uint64_t{op.parts});
    }
  }
  return parts;
}

}  // namespace

Shape::Shape(const Program& program, std::optional<uint64_t> bytes) : align_(program.launch.align) {
  for (const Loop& loop : program.loops) {
    units_.push_back(loop.unit);
    chunks_.push_back(loop.chunks);
  }
  if (!bytes) {
    make_plain(program);
  } else {
    const uint64_t part = Chunking::part_for_message(program.contract, *bytes, 1);
    chunking_.emplace(program.contract, part, align_);
    longest_ = divide_up(chunking_->longest(), align_) * align_;
    find_longest_data(program);
    if (has_lines(program)) grain_ = 8;
  }
  for (const uint64_t unit : units_) largest_unit_ = std::max(largest_unit_, unit);
}

void Shape::make_plain(const Program& program) {
  const uint64_t smallest = 3 * kPiece * parts_of(program);
  longest_ = smallest;
  uint64_t common = 0;
  for (const uint64_t unit : units_) common = std::gcd(common, unit);
  for (size_t i = 0; i < units_.size(); ++i) {
    units_[i] = units_[i] / common * smallest;
    longest_ = std::max(longest_, divide_up(3 * units_[i], chunks_[i] * kPiece) * kPiece);
  }
  longest_data_ = longest_;
}

void Shape::find_longest_data(const Program& program) {
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    for (const uint32_t buffer : {kInput, kOutput}) {
      for (uint32_t chunk = 0; chunk < program.ranks[r].buffers[buffer].chunks; ++chunk) {
        longest_data_ = std::max(longest_data_, length(r, buffer, chunk));
      }
    }
  }
}

uint64_t Shape::packet(PacketFormat format) const { return chunking_ ? info(format).data : kPiece; }

uint32_t Shape::cells(const Buffer& buffer) const {
  uint64_t bytes = longest_;
  if (buffer.units != 0) bytes = std::min(bytes, buffer.units * largest_unit_);
  if (buffer.packets != PacketFormat::none) bytes = stride(buffer.packets);
  return static_cast<uint32_t>(divide_up(bytes, grain_));
}

uint64_t Shape::length(uint32_t rank, uint32_t buffer, uint32_t chunk) const {
  if (!chunking_ || buffer >= kFirstScratch) return longest_;
  return chunking_->length(buffer == kInput ? Side::input : Side::output, rank, chunk);
}

uint64_t Shape::rounds(uint32_t loop) const {
  return divide_up(chunks_[loop] * longest_, units_[loop]);
}

uint64_t Shape::stride(PacketFormat format) const {
  if (format == PacketFormat::none) return longest_;
  return divide_up(longest_, packet(format)) * packet(format);
}

Extent Shape::own(const Op& op, uint32_t chunks, PacketFormat format, uint64_t round) const {
  Extent all = {0, chunks * stride(format)};
  if (op.loop != kNone) {
    const uint64_t unit = units_[op.loop];
    all = {std::min(round * unit, all.end), std::min((round + 1) * unit, all.end)};
  }
  if (op.parts < 2) return all;
  // The first parts are a granule longer.
  const uint64_t granule = format == PacketFormat::none ? align_ : packet(format);
  const uint64_t granules = divide_up(all.end - all.begin, granule);
  const uint64_t q = granules / op.parts, longer = granules % op.parts;
  const auto begin = [&](uint64_t i) {
    return std::min(all.begin + (i * q + std::min(i, longer)) * granule, all.end);
  };
  return {begin(op.part), begin(op.part + 1u)};
}

}  // namespace mscclc::explorer
