// PyTorch's one-shot and two-shot AllReduce over symmetric memory, as baselines. PyTorch has
// processes of its own, so they are timed before our ranks start, by a script with the same sizes
// and batches that prints lines of record.h.
#pragma once

#include <string>

#include "tools/bench/results/result.h"
#include "tools/bench/support/options.h"

namespace mscclc::bench {

/// The script's arguments: which sizes, and how many calls of each.
std::string torch_arguments(const Options& options);

/// Runs it, where `python3 -c 'import torch'` works; otherwise "torch" is left out. Nothing for
/// what PyTorch has no kernel for: other collectives and reductions, buffers that are moved.
Record run_torch(const Options& options);

}  // namespace mscclc::bench
