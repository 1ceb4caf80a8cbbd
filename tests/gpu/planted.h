// Plans that hang: programs of the library from which something was taken away that other ranks
// wait for.
#pragma once

#include <string>
#include <vector>

#include "ir/support/result.h"
#include "tests/gpu/cases.h"

namespace mscclc::testing {

struct PlantedHang {
  Case plan;
  /// What rank 1, which misses it first, must say: parts of its report.
  std::vector<std::string> report;
};

/// A signal, packets with flags, sentinel packets, and a port's put are taken from thread block 0
/// of rank 0. Errors: what the compiler says.
Result<std::vector<PlantedHang>> planted_hangs(uint32_t ranks);

/// Calls after which all ranks wait, as one of them cannot end its first one.
inline uint64_t calls_until_all_wait(uint32_t ranks) { return ranks + 1; }

}  // namespace mscclc::testing
