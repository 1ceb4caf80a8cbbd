// Copies to a peer by a copy engine: what a port channel's proxy does with a GPU.
//
// Order. A lane is one stream, so orders are carried out one after the other. What the kernel sees
// that waits for a count (a peer's for data, this rank's for a flush): the count is written by
// cuStreamWriteValue64, which "will provide a memory fence before the write, which has similar
// semantics to __threadfence_system() but is scoped to the stream" (CUDA driver API,
// CUstreamWriteValue_flags; CU_STREAM_WRITE_VALUE_DEFAULT). So the data of all puts of the lane is
// performed at system scope before the count, and the waiter's ld.acquire.sys of the count orders
// its own loads of the data, and stores to the sources, after it. Where the driver refuses such a
// write to a mapping of peer memory, the count is copied from pinned memory as 8 bytes: a copy
// begins when its predecessors in the stream have completed (CUDA programming guide, streams),
// which includes that their data has been written. That 8 aligned bytes arrive as one is an
// assumption (docs/design/gpu.md, "Order of memory").
//
// A lane's stream has the highest priority, and so hardware queues that the caller's streams do not
// have: an order never queues up after a kernel that waits for it, also with
// CUDA_DEVICE_MAX_CONNECTIONS=1, which gives all streams of a priority one queue.
//
// The driver sets no device by itself (the runtime would take GPU 0 and leave a context there), and
// each order makes the lane's context current; in a thread that has called Device::bind_thread()
// this costs a look.
#pragma once

#include <memory>

#include "executor/launch.h"
#include "runtime/api/device.h"
#include "runtime/devices/cuda/memory/memory.h"

namespace mscclc::cuda {

class CudaLane final : public Lane {
 public:
  /// nullptr: reported.
  [[nodiscard]] static std::unique_ptr<CudaLane> open(const SharedContext& context,
                                                      Diagnostics& diagnostics);
  ~CudaLane() override;

  /// REQUIRES of places: mapped here.
  bool put(const RemotePlace& to, const void* from, uint64_t bytes,
           Diagnostics& diagnostics) override;
  bool signal(const RemotePlace& count, uint64_t value, Diagnostics& diagnostics) override;
  bool complete(uint64_t* count, uint64_t value, Diagnostics& diagnostics) override;
  FlushState try_flush(Diagnostics& diagnostics) override;

 private:
  /// Counts on their way: a slot is used again after a flush.
  static constexpr uint64_t kSlots = 512;

  CudaLane(SharedContext context, std::unique_ptr<OwnStream> stream)
      : context_(std::move(context)), stream_(std::move(stream)) {}
  [[nodiscard]] bool copy_count(uint64_t* count, uint64_t value, Diagnostics& diagnostics);
  [[nodiscard]] bool synchronize(Diagnostics& diagnostics);

  SharedContext context_;
  std::unique_ptr<Memory> slots_;
  std::unique_ptr<OwnStream> stream_;
  bool writes_ = true;  ///< the driver writes counts itself
  uint64_t used_ = 0;   ///< slots since the last flush
};

}  // namespace mscclc::cuda
