// Counts in the memory of a GPU that the processor sets by itself, through GDRCopy, instead of a
// stream of the GPU: a store takes a fraction of the time.
//
// A store is no part of the order of data and count: GDRCopy and CUDA promise no order among writes
// that come to a GPU from outside. So the thread that stores a count must know first that what it
// announces is in the GPU's memory: a read by the network device has been answered
// (verbs/loop/flush_read.h), and copies of streams have ended. A store that begins after that
// cannot be seen before it.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/devices/cuda/gdrcopy/gdrcopy.h"
#include "runtime/devices/cuda/internode/own_allocations.h"
#include "runtime/devices/cuda/memory/memory.h"

namespace mscclc::cuda {

/// Thread safety: from any thread.
class GpuCounts {
 public:
  /// `gdr` may be nullptr: then there are none.
  GpuCounts(SharedContext context, std::shared_ptr<OwnAllocations> own,
            std::shared_ptr<const GdrCopy> gdr)
      : context_(std::move(context)), own_(std::move(own)), gdr_(std::move(gdr)) {}

  /// Sets a count, whose memory is kept meanwhile. False: it cannot be set so. Its page stays
  /// mapped as long as its memory is there.
  [[nodiscard]] bool store(const uint8_t* count, uint64_t value) const;

 private:
  /// nullptr: it cannot be mapped, which is logged.
  [[nodiscard]] std::shared_ptr<const GdrMapping> map(uint64_t page) const;

  const SharedContext context_;
  const std::shared_ptr<OwnAllocations> own_;
  const std::shared_ptr<const GdrCopy> gdr_;
};

}  // namespace mscclc::cuda
