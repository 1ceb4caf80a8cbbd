#include "runtime/core/device/region.h"

#include <algorithm>

#include "executor/interpreter/packets.h"

namespace mscclc {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 48;
constexpr uint64_t kFillBytes = 1 << 20;

}  // namespace

std::optional<RegionLayout::Spot> RegionLayout::find(uint64_t at) const {
  for (uint32_t b = kFirstScratch; b < buffers.size(); ++b) {
    const BufferLayout& buffer = buffers[b];
    if (at < scratch[b] || at - scratch[b] >= buffer.stride * buffer.copies) continue;
    return Spot{b, (at - scratch[b]) % buffer.stride};
  }
  return std::nullopt;
}

bool lay_out_region(const Program& program, uint32_t rank, const Chunking& capacity,
                    RegionLayout& layout, Diagnostics& diagnostics) {
  if (!scratch_layout(program, rank, capacity, layout.buffers, diagnostics)) return false;
  layout.scratch.assign(layout.buffers.size(), 0);
  layout.counts_bytes =
      std::max<uint64_t>(program.ranks[rank].channels.size(), 1) *
      RegionLayout::kCountStride;  // never empty: there is always something to map
  for (uint32_t b = kFirstScratch; b < layout.buffers.size(); ++b) {
    const BufferLayout& buffer = layout.buffers[b];
    layout.scratch[b] = layout.scratch_bytes;
    layout.scratch_bytes += buffer.stride * buffer.copies;
    if (layout.bytes() < kMaxBytes) continue;
    diagnostics.error("too-large", {}, "the scratch buffers have 256 TiB or more together");
    return false;
  }
  return true;
}

bool fill_scratch(Device& device, const RegionLayout& layout, uint8_t* scratch, uint32_t element,
                  Diagnostics& diagnostics) {
  const std::vector<uint64_t> empty(kFillBytes / sizeof(uint64_t),
                                    device::stamp_of(0, element).sentinel);
  for (uint32_t b = kFirstScratch; b < layout.buffers.size(); ++b) {
    const BufferLayout& buffer = layout.buffers[b];
    if (!is_sentinel(buffer.packets)) continue;
    const uint64_t bytes = buffer.stride * buffer.copies;
    for (uint64_t at = 0; at < bytes; at += kFillBytes) {
      const uint64_t n = std::min(kFillBytes, bytes - at);
      if (!device.write(scratch + layout.scratch[b] + at, empty.data(), n, diagnostics)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace mscclc
