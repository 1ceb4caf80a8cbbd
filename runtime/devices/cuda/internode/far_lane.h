// A lane of a GPU to another node: what lies in the GPU's memory is copied, piece by piece, to
// pinned memory that a lane over sockets or verbs sends; what lies in host memory, or where a
// network device reads the GPU's memory by itself, is sent from there.
//
// While one piece is sent the next ones are copied. The proxy waits for copies of the GPU, and
// where all pieces are on their way for the peer to take some; a lane over sockets keeps it
// waiting, too, when it has too much to send.
#pragma once

#include <functional>
#include <memory>

#include "runtime/devices/cuda/internode/own_allocations.h"
#include "runtime/devices/cuda/memory/memory.h"

namespace mscclc::cuda {

/// Does a lane read this memory of the GPU by itself?
using Reads = std::function<bool(const void* from, uint64_t bytes)>;

/// `lane`: takes orders whose sources are host memory, or what it reads. `own`: knows the memory
/// that this allocates. `over`: LanePeer::over. nullptr: reported.
[[nodiscard]] std::unique_ptr<Lane> make_far_lane(const SharedContext& context,
                                                  std::unique_ptr<Lane> lane, Reads reads,
                                                  OwnAllocations& own, std::function<bool()> over,
                                                  Diagnostics& diagnostics);

}  // namespace mscclc::cuda
