#include "runtime/base/machine.h"

#include <unistd.h>

#include <fstream>

namespace mscclc {

std::array<uint8_t, 36> this_machine() {
  std::array<uint8_t, 36> id{};
  std::ifstream file("/proc/sys/kernel/random/boot_id", std::ios::binary);
  file.read(reinterpret_cast<char*>(id.data()), id.size());
  return id;
}

uint64_t memory_of_machine() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace mscclc
