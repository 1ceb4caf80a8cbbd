// Where a communicator's rank runs: the calling thread's GPU, or this machine's processor where
// MSCCLC_DEVICE says so; and the order between streams, which the real NCCL's calls need.
#pragma once

#include <memory>

#include "ir/diagnostic.h"
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

/// What is put on `behind` from now on waits for what is on `front`. Different capture states of
/// the two are the caller's own mistake, which the driver reports.
[[nodiscard]] bool order_streams(Device& device, StreamHandle front, StreamHandle behind,
                                 Diagnostics& diagnostics);

}  // namespace mscclc::nccl
