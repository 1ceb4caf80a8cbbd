// A read by which a network device makes what it has written to a GPU visible there.
//
// Why that is so. Writes and the read are requests of one PCI function to one GPU. On PCI Express a
// read request does not pass a posted write before it (PCI Express Base Specification, "Transaction
// Ordering", read after posted request: "No"), unless one of them has the attribute for relaxed or
// ID-based ordering; regions are registered without IBV_ACCESS_RELAXED_ORDERING. So once the read
// is answered the GPU has the writes. A completion by itself does not say that: it comes to the
// processor by another path. NCCL orders its receives by the same read, also on another queue pair
// than the data's, where the GPU or the device needs one.
//
// It holds for one path: a device with a data-direct function (resources/data_direct.h) has two to
// a GPU, and CUDA's driver documents them as ordering domains of their own
// (cuFlushGPUDirectRDMAWrites). So the byte that is read must be in a region of that path.
#pragma once

#include <cstdint>
#include <memory>

#include "ir/support/result.h"
#include "runtime/network/verbs/loop/loop_pair.h"

namespace mscclc::verbs {

/// Thread safety: one thread at a time.
class FlushRead {
 public:
  static Result<std::unique_ptr<FlushRead>> make(const Adapter& adapter);
  /// Reads the byte at `address`, which is registered for remote reading, and waits for it.
  Result<void> run(uint64_t address, uint32_t key);

 private:
  explicit FlushRead(std::unique_ptr<LoopPair> pair) : pair_(std::move(pair)) {}

  const std::unique_ptr<LoopPair> pair_;
};

}  // namespace mscclc::verbs
