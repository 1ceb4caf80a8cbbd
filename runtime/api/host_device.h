// This machine's processor and shared memory as a device: what a job runs on without GPUs, and what
// the tests of the runtime run on. Ranks are processes, threads of one process, or both.
#pragma once

#include <memory>

#include "runtime/api/device.h"

namespace mscclc {

/// The kinds of lanes between host devices.
enum class HostLanes {
  copies,   ///< the proxy copies to the peer's memory, which is mapped
  messages  ///< the peer does it: its memory need not be mapped (message_lane.h)
};

/// A device for one rank. nullptr: reported (the server of descriptors could not start).
/// `link`: what it says joins it to others; tests say what GPUs would. `lanes`: the same on all
/// ranks.
[[nodiscard]] std::unique_ptr<Device> make_host_device(Diagnostics& diagnostics,
                                                       const Link& link = {},
                                                       HostLanes lanes = HostLanes::copies);

}  // namespace mscclc
