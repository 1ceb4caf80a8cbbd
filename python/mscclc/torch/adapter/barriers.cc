#include "python/mscclc/torch/adapter/barriers.h"

#include <ATen/Context.h>
#include <ATen/detail/AcceleratorHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <limits>

namespace mscclc::torch_adapter {
namespace {

/// None on machines without such GPUs, for which torch may have been built all the same. Where fake
/// tensors were used, torch's guard says that there is one of CUDA's.
int count_of(c10::DeviceType gpus) {
  if (gpus == c10::kCUDA && !at::hasCUDA()) return 0;
  if (!c10::impl::hasDeviceGuardImpl(gpus)) return 0;
  return c10::impl::VirtualGuardImpl(gpus).deviceCount();
}

/// The current GPU, unless the process has nothing there: to ask more would make it a context.
std::optional<c10::Device> gpu_in_use(c10::DeviceType gpus) {
  if (count_of(gpus) == 0) return std::nullopt;
  const c10::Device current = c10::impl::VirtualGuardImpl(gpus).getDevice();
  const auto& hooks = at::globalContext().getAcceleratorHooksInterface(gpus);
  return hooks.hasPrimaryContext(current.index()) ? std::optional(current) : std::nullopt;
}

}  // namespace

std::optional<c10::Device> named_gpu(const c10d::BarrierOptions& options) {
  c10::Device named(c10::kCPU);
  if (options.device) {
    named = *options.device;
  } else if (!options.device_ids.empty()) {
    const int64_t id = options.device_ids[0];
    TORCH_CHECK(id >= 0 && id < std::numeric_limits<c10::DeviceIndex>::max(),
                "mscclc barrier: there is no GPU ", id);
    named = {c10::kCUDA, static_cast<c10::DeviceIndex>(id)};
  }
  if (named.is_cpu()) return std::nullopt;
  const int count = count_of(named.type());
  if (count == 0) return std::nullopt;  // torch gives the host the index that was named
  if (!named.has_index()) return c10::impl::VirtualGuardImpl(named.type()).getDevice();
  TORCH_CHECK(named.index() >= 0 && named.index() < count, "mscclc barrier: there is no GPU ",
              static_cast<int>(named.index()), " among ", count);
  return named;
}

std::shared_ptr<std::vector<PooledEvent>> work_beside(const c10::Device& device,
                                                      const std::vector<Where>& places,
                                                      c10::DeviceType gpus) {
  std::vector<c10::Device> found;
  if (const auto current = gpu_in_use(gpus)) found.push_back(*current);
  for (const Where& where : places) found.push_back(where.device);
  auto events = std::make_shared<std::vector<PooledEvent>>();
  for (auto at = found.begin(); at != found.end(); ++at) {
    if (at->is_cpu() || *at == device || std::find(found.begin(), at, *at) != at) continue;
    events->emplace_back().record(c10::impl::VirtualGuardImpl(at->type()).getStream(*at));
  }
  return events;
}

}  // namespace mscclc::torch_adapter
