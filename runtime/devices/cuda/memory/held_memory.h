// Memory of this rank that is registered: notices when something else lies at its address, because
// it was freed and allocated again. Peers would go on with the old memory.
#pragma once

#include <memory>

#include "runtime/api/device.h"
#include "runtime/devices/cuda/driver/vmm.h"

namespace mscclc::cuda {

/// Of any allocator. nullptr: reported; also of more bytes than there are addresses (bad-call).
[[nodiscard]] std::unique_ptr<HeldMemory> hold_memory(const SharedContext& context,
                                                      const void* address, uint64_t bytes,
                                                      Diagnostics& diagnostics);

}  // namespace mscclc::cuda
