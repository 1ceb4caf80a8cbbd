#include "runtime/host/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mscclc {

std::unique_ptr<HostWindow> HostWindow::reserve(uint64_t bytes, ExposedId exposed,
                                                std::optional<DeviceKey> device_key,
                                                Diagnostics& diagnostics) {
  void* const at = ::mmap(nullptr, std::max<uint64_t>(bytes, 1), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at != MAP_FAILED) {
    return std::unique_ptr<HostWindow>(
        new HostWindow(static_cast<uint8_t*>(at), bytes, exposed, device_key));
  }
  diagnostics.error("out-of-memory", {},
                    fmt::format("cannot reserve {} bytes of addresses for a peer's memory: {}",
                                bytes, std::strerror(errno)));
  return nullptr;
}

HostWindow::~HostWindow() { ::munmap(data_, std::max<uint64_t>(bytes_, 1)); }

}  // namespace mscclc
