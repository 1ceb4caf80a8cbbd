// This machine's processor and shared memory as a device: what a job runs on without GPUs, and what
// the tests of the runtime run on. Ranks are processes, threads of one process, or both.
#pragma once

#include <memory>

#include "runtime/api/device.h"

namespace mscclc {

/// A device for one rank. nullptr: reported (the server of descriptors could not start).
/// `link`: what it says joins it to others; tests say what GPUs would.
[[nodiscard]] std::unique_ptr<Device> make_host_device(Diagnostics& diagnostics,
                                                       const Link& link = {});

}  // namespace mscclc
