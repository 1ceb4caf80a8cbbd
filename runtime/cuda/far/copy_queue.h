// Copies of a GPU on a stream of their own, of which the host knows at any time how many are done:
// behind each copy the stream writes its number to host memory.
//
// The driver documents that such a write comes with a fence at system scope
// (cuStreamWriteValue64, CU_STREAM_WRITE_VALUE_DEFAULT; runtime/cuda/copy_lane.h). So whoever sees
// a number, or a count that set() has written, sees the bytes of all copies before it. Where the
// driver has no such writes, each copy is waited for.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/cuda/memory/memory.h"

namespace mscclc::cuda {

/// Thread safety: one thread at a time.
class CopyQueue {
 public:
  /// nullptr: reported.
  [[nodiscard]] static std::unique_ptr<CopyQueue> open(const SharedContext& context,
                                                       Diagnostics& diagnostics);
  /// Waits for all.
  ~CopyQueue();

  /// Begins a copy. False: reported, and nothing more will be done.
  [[nodiscard]] bool copy(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics);
  /// Sets a count, of the device or of the host, after all that was begun before.
  [[nodiscard]] bool set(uint8_t* count, uint64_t value, Diagnostics& diagnostics);
  /// The number of what was begun last; 0: nothing was.
  uint64_t begun() const { return begun_; }
  /// Has number `number` been done, and all before it?
  bool is_done(uint64_t number) const;
  /// Waits for it.
  [[nodiscard]] bool wait(uint64_t number, Diagnostics& diagnostics);

 private:
  CopyQueue(SharedContext context, std::unique_ptr<OwnStream> stream)
      : context_(std::move(context)), stream_(std::move(stream)) {}
  [[nodiscard]] bool write(abi::Address at, uint64_t value, Diagnostics& diagnostics);
  [[nodiscard]] bool finish(Diagnostics& diagnostics);
  [[nodiscard]] bool synchronize(Diagnostics& diagnostics);

  const SharedContext context_;
  std::unique_ptr<OwnStream> stream_;
  std::unique_ptr<Memory> words_;  ///< the number done; a count on its way
  bool writes_ = true;             ///< the stream writes 64-bit values
  uint64_t begun_ = 0;
};

}  // namespace mscclc::cuda
