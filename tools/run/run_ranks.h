// `mscclc run` on a device: every rank is a process (or, on GPUs, a thread) with a communicator of
// its own. Started by a launcher (torchrun, mpirun, srun) this process is one rank; otherwise it
// starts all ranks itself. Rank 0 prints the table.
#pragma once

#include <string>
#include <vector>

#include "tools/io/input.h"
#include "tools/run/run_work.h"

namespace mscclc {

/// Runs `specs` on options.device, which is not "host". Returns the exit code.
int run_ranks(const RunOptions& options, Input& input, const std::vector<RunSpec>& specs);

}  // namespace mscclc
