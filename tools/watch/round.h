// One round of 'mscclc watch': compiles, proves and runs a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/cpu/fiber.h"
#include "tools/io/input.h"
#include "tools/watch/file_changes.h"

namespace mscclc {

struct Round {
  bool right = false;           ///< proved, and run with the right result
  std::string verdict;          ///< "proved, right on 8 ranks; 12.3 ms"
  std::vector<ReadFile> files;  ///< the program and what it imports
};

/// Runs messages of `bytes` on the simulator. Errors go to standard error. `stacks` are kept from
/// round to round.
Round run_round(const InputOptions& options, uint64_t bytes, FiberPool& stacks);

}  // namespace mscclc
