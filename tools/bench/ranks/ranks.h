// The benchmark's ranks: processes of this machine, forked by this one, that meet.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/api/bootstrap.h"
#include "tools/bench/ranks/watch.h"

namespace mscclc::bench {

/// Runs fn in a process for each rank; its value is the process's exit code. If one fails, the
/// others are ended, which may wait for it. Returns the first code that is not 0; 3 for a signal or
/// a rank that does not get there. If nothing begins in `watch`, which is in shared memory, for
/// longer than `patience`, all are ended, and 3 it is; 0: they may take any time.
int run_ranks(uint32_t ranks, const Watch& watch, std::chrono::seconds patience,
              const std::function<int(std::unique_ptr<Bootstrap>)>& fn);

/// Memory that processes forked from now on share, zeros; nullptr: there is none.
void* shared_memory(size_t bytes);

}  // namespace mscclc::bench
