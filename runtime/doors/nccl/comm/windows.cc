#include "runtime/doors/nccl/comm/windows.h"

#include <algorithm>
#include <iterator>

namespace mscclc::nccl {

void Windows::add(ncclWindow_t window, const void* buffer, const SharedMemory& memory) {
  known_.push_back({window, static_cast<const uint8_t*>(buffer), memory});
}

std::optional<SharedMemory> Windows::take(ncclWindow_t window) {
  const auto found = std::find_if(known_.rbegin(), known_.rend(),
                                  [&](const KnownWindow& known) { return known.window == window; });
  if (found == known_.rend()) return std::nullopt;
  const SharedMemory memory = found->memory;
  known_.erase(std::next(found).base());
  return memory;
}

bool Windows::hold(const void* at, uint64_t bytes) const {
  const auto* const first = static_cast<const uint8_t*>(at);
  const auto found = std::find_if(known_.rbegin(), known_.rend(), [&](const KnownWindow& known) {
    return first >= known.begin && first < known.begin + known.memory.bytes;
  });
  return found != known_.rend() &&
         bytes <= found->memory.bytes - static_cast<uint64_t>(first - found->begin);
}

}  // namespace mscclc::nccl
