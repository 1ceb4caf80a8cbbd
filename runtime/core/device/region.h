// The memory of an executable that peers write: counts of signals, and scratch buffers. Every rank
// knows how those of all ranks are laid out. Scratch follows the counts, or lies in memory that
// executables have in turn.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "executor/lower.h"
#include "ir/program/program.h"
#include "runtime/api/device.h"

namespace mscclc {

/// Where things lie in the region of one rank.
struct RegionLayout {
  /// Bytes from one channel's count to the next: polls of one do not disturb writes of another.
  static constexpr uint64_t kCountStride = 128;
  std::vector<uint64_t> scratch;  ///< begin of each buffer, after the counts; input and output: 0
  std::vector<BufferLayout> buffers;
  uint64_t counts_bytes = 0, scratch_bytes = 0;

  uint64_t bytes() const { return counts_bytes + scratch_bytes; }

  /// A byte of a copy of a scratch buffer.
  struct Spot {
    uint32_t buffer;
    uint64_t offset;
  };
  /// What lies so many bytes from the begin of scratch; nullopt: nothing.
  std::optional<Spot> find(uint64_t at) const;
};

/// Lays out a rank's region for messages up to `capacity`. Errors (too-large).
[[nodiscard]] bool lay_out_region(const Program& program, uint32_t rank, const Chunking& capacity,
                                  RegionLayout& layout, Diagnostics& diagnostics);

/// Makes scratch what a plan expects to find before its first call: zeros everywhere, the sentinel
/// of elements of `element` bytes in sentinel packets. REQUIRES: it is all zeros.
[[nodiscard]] bool fill_scratch(Device& device, const RegionLayout& layout, uint8_t* scratch,
                                uint32_t element, Diagnostics& diagnostics);

/// A rank's region as this process sees it: its own memory, or a mapping of a peer's. A value; the
/// copies share the memory. Thread safety: nothing changes it.
class PeerMemory {
 public:
  PeerMemory() = default;
  /// `scratch`: where that is; nullptr: after the counts.
  PeerMemory(std::shared_ptr<const Memory> counts, std::shared_ptr<const RegionLayout> layout,
             std::shared_ptr<const Memory> scratch = nullptr)
      : counts_(std::move(counts)), scratch_(std::move(scratch)), layout_(std::move(layout)) {
    first_ = scratch_ == nullptr ? counts_->data() + layout_->counts_bytes : scratch_->data();
  }
  explicit operator bool() const { return counts_ != nullptr; }
  const RegionLayout& layout() const { return *layout_; }

  /// The count of signals that have arrived at a channel of that rank.
  uint64_t* arrived(uint32_t channel) const {
    return reinterpret_cast<uint64_t*>(counts_->data() + channel * RegionLayout::kCountStride);
  }
  uint8_t* scratch(uint32_t buffer) const { return first_ + layout_->scratch[buffer]; }
  /// RegionLayout::find() for an address.
  std::optional<RegionLayout::Spot> find(uint64_t address) const {
    return layout_->find(address - reinterpret_cast<uint64_t>(first_));
  }

 private:
  std::shared_ptr<const Memory> counts_, scratch_;
  std::shared_ptr<const RegionLayout> layout_;
  uint8_t* first_ = nullptr;  ///< of scratch
};

}  // namespace mscclc
