// One round of 'mscclc watch': compiles, proves and runs a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/base/input.h"

namespace mscclc {

struct Round {
  bool right = false;              ///< proved, and run with the right result
  std::string verdict;             ///< "proved, right on 8 ranks; 12.3 ms"
  std::vector<std::string> files;  ///< that were read
};

/// Runs messages of `bytes` on the simulator. Errors go to standard error.
Round run_round(const InputOptions& options, uint64_t bytes);

}  // namespace mscclc
