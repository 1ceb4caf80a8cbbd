#include "runtime/support/machine.h"

#include <unistd.h>

namespace mscclc {

uint64_t memory_of_machine() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace mscclc
