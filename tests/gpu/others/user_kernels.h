// What applications put on streams beside calls, for tests: kernels that fill a GPU, and pauses.
#pragma once

#include <chrono>

#include "executor/launch.h"
#include "runtime/api/device.h"

namespace mscclc::testing {

/// How a kernel is ordered with the ones before and after it (programmatic dependent launch).
enum class Manner {
  plain,     ///< begins when the one ahead has ended
  early,     ///< begins as soon as that lets it, and waits for its end
  triggers,  ///< plain, and lets the next one begin at once
};

/// A kernel that takes every multiprocessor for itself, for so long. False: reported.
bool fill_gpu(StreamHandle stream, Manner manner, std::chrono::microseconds time,
              Diagnostics& diagnostics);
/// What comes on the stream from now on begins so much later. False: reported.
bool hold(StreamHandle stream, std::chrono::milliseconds time, Diagnostics& diagnostics);

}  // namespace mscclc::testing
