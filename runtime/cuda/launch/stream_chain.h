// Keeps calls of a communicator in order that are launched on several streams of a GPU.
//
// Launches on one stream need nothing, and must have nothing: a kernel begins early only if it
// follows another one at once, and an event between them is something else. So events are recorded
// only from the moment when there is a second stream. Where the first one ends then cannot be asked
// any more (it may have been destroyed), so the host waits for the GPU, that once.
//
// In a capture the streams of the calls are there until it ends, and edges cost nothing.
#pragma once

#include <memory>
#include <vector>

#include "runtime/api/device.h"
#include "runtime/cuda/memory/memory.h"

namespace mscclc::cuda {

class CudaStreamChain final : public StreamChain {
 public:
  explicit CudaStreamChain(SharedContext context) : context_(std::move(context)) {}

  bool follow(StreamHandle stream, Diagnostics& diagnostics) override;
  bool put_last(StreamHandle stream, Diagnostics& diagnostics) override;

 private:
  /// A stream as the driver knows it now. Handles come again, ids do not; a captured stream must
  /// not be asked for its id.
  struct Stream {
    abi::Stream handle = nullptr;
    uint64_t id = 0;
    uint64_t capture = 0;              ///< id; 0: none
    std::vector<abi::GraphNode> ends;  ///< captured: what the next node will follow
  };
  bool find(StreamHandle stream, Stream& found, Diagnostics& diagnostics) const;
  bool follow_captured(const Stream& stream, Diagnostics& diagnostics) const;
  bool wait_for_all(Diagnostics& diagnostics);

  const SharedContext context_;
  Stream now_;                       ///< of the last follow()
  uint64_t last_ = 0;                ///< id of the stream of the last call; 0: there was none
  std::unique_ptr<OwnEvent> event_;  ///< its end; nullptr: there has been one stream only
  Stream captured_;                  ///< the end of what a capture has taken last
};

}  // namespace mscclc::cuda
