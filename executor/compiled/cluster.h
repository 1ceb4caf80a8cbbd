// Over how many CUDA blocks, of a cluster, a compiled kernel spreads each thread block of its plan
// (executor/cuda/device/cluster.cuh). Threads, their numbers and the order of sums stay the same.
#pragma once

#include <cstdint>

#include "executor/compiled/shape.h"

namespace mscclc {

/// 1: each is one CUDA block. More where rows are wide, and blocks send packets and compute rows,
/// and do nothing else: CUDA blocks of a cluster meet only before they wait, so that one that gives
/// up keeps none waiting, and show one another sums alone. Of more blocks than a GPU has
/// multiprocessors each is one. `program`: the shape's.
uint32_t cluster_of(const CompiledShape& shape, const Program& program);

}  // namespace mscclc
