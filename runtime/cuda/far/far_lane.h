// A lane of a GPU to another node: what lies in the GPU's memory is copied, piece by piece, to
// pinned memory that a lane over sockets sends; what lies in host memory is sent from there.
//
// While one piece is sent the next ones are copied. The proxy waits for copies of the GPU, and
// where all pieces are on their way for the peer to take some; a lane over sockets keeps it
// waiting, too, when it has too much to send.
#pragma once

#include <functional>
#include <memory>

#include "runtime/cuda/memory/memory.h"

namespace mscclc::cuda {

/// `lane`: takes orders whose sources are host memory. `over`: LanePeer::over. nullptr: reported.
[[nodiscard]] std::unique_ptr<Lane> make_far_lane(const SharedContext& context,
                                                  std::unique_ptr<Lane> lane,
                                                  std::function<bool()> over,
                                                  Diagnostics& diagnostics);

}  // namespace mscclc::cuda
