// Barriers: where they are, and the work of GPUs that they wait for. As NCCL's, a barrier ends
// after what all ranks had queued on their GPUs by then.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "python/mscclc/torch/adapter/queues/event_pool.h"
#include "python/mscclc/torch/adapter/where.h"

namespace mscclc::torch_adapter {

/// The GPU that the caller of a barrier names, where there are GPUs.
std::optional<c10::Device> named_gpu(const c10d::BarrierOptions& options);

/// What the current streams of other GPUs than `device` have now: of GPUs among the places, and of
/// the current GPU of the type, if the process uses it.
std::shared_ptr<std::vector<PooledEvent>> work_beside(const c10::Device& device,
                                                      const std::vector<Where>& places,
                                                      c10::DeviceType gpus = c10::kCUDA);

}  // namespace mscclc::torch_adapter
