// Streams, as callers name them.
#pragma once

namespace mscclc {

/// A stream of the device: launches and copies on it run in order, while the caller goes on. For
/// CUDA it is a cudaStream_t that the caller owns.
using StreamHandle = void*;

}  // namespace mscclc
