// Streams, as callers name them.
#pragma once

#include <cstdint>

namespace mscclc {

/// A stream of the device: launches and copies on it run in order, while the caller goes on. For
/// CUDA it is a cudaStream_t that the caller owns.
using StreamHandle = void*;

/// Whether a StreamChain (device.h) also orders replays of graphs, of which it learns nothing.
enum class Replays : uint8_t {
  ignored,  ///< in a capture it orders what that capture takes, and no more
  /// A graph's own nodes order each replay after what was on the chain when the graph was launched,
  /// and before what comes on it later. From the first capture on all work, captured or not, is
  /// followed by an event, and so are the first pieces of work (CUDA: kMarkedAtFirst) and the last
  /// one on a default stream. Others, before the first capture and on one stream, must have ended
  /// when that graph first runs.
  ordered,
};

}  // namespace mscclc
