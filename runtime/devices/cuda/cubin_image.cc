#include "runtime/devices/cuda/cubin_image.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ir/support/precondition.h"

namespace mscclc::cuda {
namespace {

// Of ELF with 64 bits: where fields are in their headers, and values of them.
constexpr std::array<uint8_t, 6> kMagic = {0x7f, 'E', 'L', 'F', 2 /* 64 bits */,
                                           1 /* little end */};
constexpr uint16_t kMachineCuda = 190;
constexpr uint32_t kSectionWithoutBytes = 8;
constexpr uint64_t kHeaderBytes = 64, kMachine = 18;

/// The table of segments, or that of sections.
struct Table {
  uint64_t offset, entry_bytes, entries;  ///< fields of the file's header
  uint64_t least_entry_bytes;
  uint64_t part_offset, part_bytes;  ///< fields of an entry
};
constexpr Table kSegments = {32, 54, 56, 56, 8, 32};
constexpr Table kSections = {40, 58, 60, 64, 24, 32};
constexpr uint64_t kSectionType = 4;

/// REQUIRES: the image has these bytes.
template <typename Number>
Number number_at(std::span<const uint8_t> image, uint64_t at) {
  precondition(at <= image.size() && sizeof(Number) <= image.size() - at);
  Number number;
  std::memcpy(&number, image.data() + at, sizeof number);
  return number;
}

bool holds(std::span<const uint8_t> image, uint64_t offset, uint64_t bytes) {
  return offset <= image.size() && bytes <= image.size() - offset;
}

bool has_bytes(std::span<const uint8_t> image, const Table& table, uint64_t entry) {
  return &table != &kSections ||
         number_at<uint32_t>(image, entry + kSectionType) != kSectionWithoutBytes;
}

bool holds_all(std::span<const uint8_t> image, const Table& table) {
  const uint64_t offset = number_at<uint64_t>(image, table.offset);
  const uint64_t entry_bytes = number_at<uint16_t>(image, table.entry_bytes);
  const uint64_t entries = number_at<uint16_t>(image, table.entries);
  if (entries == 0) return offset == 0;  // or there are more than a header can say
  if (entry_bytes < table.least_entry_bytes) return false;
  if (!holds(image, offset, entries * entry_bytes)) return false;
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t entry = offset + i * entry_bytes;
    if (has_bytes(image, table, entry) &&
        !holds(image, number_at<uint64_t>(image, entry + table.part_offset),
               number_at<uint64_t>(image, entry + table.part_bytes))) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Error> fault_of_cubin(std::span<const uint8_t> image) {
  if (image.size() < kHeaderBytes || !std::equal(kMagic.begin(), kMagic.end(), image.begin()) ||
      number_at<uint16_t>(image, kMachine) != kMachineCuda) {
    return Error{"it is not a cubin"};
  }
  if (!holds_all(image, kSegments) || !holds_all(image, kSections)) return Error{"it is cut off"};
  return std::nullopt;
}

}  // namespace mscclc::cuda
