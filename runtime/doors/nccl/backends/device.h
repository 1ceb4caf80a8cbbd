// Where a communicator's rank runs: the calling thread's GPU, or this machine's processor where
// MSCCLC_DEVICE says so.
#pragma once

#include <memory>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/device.h"

namespace mscclc::nccl {

/// True: ranks run on this machine's processor, and memory is the host's.
bool runs_on_host();

/// The GPU that is current in this thread; 0 on the host, and where none is current.
int current_ordinal();
/// How many devices ranks can be on; 1 on the host, where any number of ranks share it.
int count_devices(Diagnostics& diagnostics);
/// nullptr: reported.
[[nodiscard]] std::shared_ptr<Device> open_device(int ordinal, Diagnostics& diagnostics);

}  // namespace mscclc::nccl
