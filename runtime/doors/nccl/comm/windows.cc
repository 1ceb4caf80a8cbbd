#include "runtime/doors/nccl/comm/windows.h"

#include <algorithm>
#include <iterator>

namespace mscclc::nccl {

void Windows::add(ncclWindow_t window, const void* buffer, const SharedMemory& memory) {
  entries_.push_back({window, static_cast<const uint8_t*>(buffer), memory});
}

std::optional<SharedMemory> Windows::take(ncclWindow_t window) {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [&](const Entry& entry) { return entry.window == window; });
  if (found == entries_.rend()) return std::nullopt;
  const SharedMemory memory = found->memory;
  entries_.erase(std::next(found).base());
  return memory;
}

bool Windows::hold(const void* at, uint64_t bytes) const {
  const auto* const first = static_cast<const uint8_t*>(at);
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) {
    return first >= entry.begin && first < entry.begin + entry.memory.bytes;
  });
  return found != entries_.rend() &&
         bytes <= found->memory.bytes - static_cast<uint64_t>(first - found->begin);
}

}  // namespace mscclc::nccl
