// What is mutated: the library at 2 to 4 ranks, and random pipelines.
#pragma once

#include <string>
#include <vector>

#include "ir/program/program.h"

namespace mscclc {

struct MutateWorld {
  std::string name;  ///< "allreduce_ring R=3"
  Program program;
};

/// Every library program in its worlds of 2 to 4 ranks, with short pipeline units: rounds cost no
/// more than they must. Then some random pipelines with units, credits, semaphores and ports.
std::vector<MutateWorld> mutate_worlds();

}  // namespace mscclc
