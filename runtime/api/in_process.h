// A bootstrap for ranks that are threads of one process: for tests, and for a process that drives
// several devices and needs no others. No sockets.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "runtime/api/bootstrap.h"

namespace mscclc {

/// Bootstraps of `ranks` ranks that belong together; each is for one thread. A rank that waits for
/// another longer than `timeout` reports bootstrap-timeout.
std::vector<std::unique_ptr<Bootstrap>> make_in_process_bootstraps(
    uint32_t ranks, std::chrono::milliseconds timeout);

}  // namespace mscclc
