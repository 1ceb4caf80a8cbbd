// Copies of a GPU on a stream of their own, of which the host knows at any time how many are done:
// after some of them the stream writes a number to host memory. Each such mark takes the host about
// as long as a copy does, so the code that begins copies says where one is needed.
//
// The driver documents that such a write comes with a fence at system scope
// (cuStreamWriteValue64, CU_STREAM_WRITE_VALUE_DEFAULT; runtime/devices/cuda/copy_lane.h). So a
// reader that sees a number, or a count that set() has written, sees the bytes of all copies before
// it. Where the driver has no such writes, each copy is waited for.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/devices/cuda/memory/memory.h"

namespace mscclc::cuda {

/// Thread safety: is_done() and wait() from any thread, all others by one thread at a time.
class CopyQueue {
 public:
  /// nullptr: reported.
  [[nodiscard]] static std::unique_ptr<CopyQueue> open(const SharedContext& context,
                                                       Diagnostics& diagnostics);
  /// Waits for all.
  ~CopyQueue();

  /// Begins a copy, without a mark. False: reported, and nothing more will be done.
  [[nodiscard]] bool copy(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics);
  /// Marks what was begun last. False: as above.
  [[nodiscard]] bool mark(Diagnostics& diagnostics);
  /// Sets a count, of the device or of the host, after all that was begun before; a mark.
  [[nodiscard]] bool set(uint8_t* count, uint64_t value, Diagnostics& diagnostics);
  /// The number of what was begun last, or that it will have when it is marked; 0: nothing was.
  uint64_t begun() const { return marks_ + (unmarked_ ? 1 : 0); }
  /// Has number `number` been done, and all before it? Not known before it is marked.
  bool is_done(uint64_t number) const;
  /// Waits for it, which takes longer where it is not marked.
  [[nodiscard]] bool wait(uint64_t number, Diagnostics& diagnostics) const;

 private:
  CopyQueue(SharedContext context, std::unique_ptr<OwnStream> stream)
      : context_(std::move(context)), stream_(std::move(stream)) {}
  [[nodiscard]] bool write(abi::Address at, uint64_t value, Diagnostics& diagnostics);
  [[nodiscard]] bool synchronize(Diagnostics& diagnostics) const;

  const SharedContext context_;
  std::unique_ptr<OwnStream> stream_;
  std::unique_ptr<Memory> words_;  ///< the number done; a count on its way
  bool writes_ = true;             ///< the stream writes 64-bit values
  uint64_t marks_ = 0;
  bool unmarked_ = false;  ///< something was begun after the last mark
};

}  // namespace mscclc::cuda
