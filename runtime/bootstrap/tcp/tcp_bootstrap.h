// A bootstrap over sockets: each rank has one connection to the job's hub, over TCP or a unix
// socket.
#pragma once

#include <chrono>
#include <memory>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/bootstrap.h"
#include "runtime/bootstrap/tcp/connect.h"
#include "runtime/bootstrap/tcp/hub.h"

namespace mscclc {

/// Collective: connects this rank, and returns when all ranks have come. The hub, if this process
/// runs it, is closed with the bootstrap. `timeout`: for finding the hub; the hub says how long
/// steps may take. Errors: those of connect_to_hub() and of all_gather(), what `where.gives_up`
/// reports.
[[nodiscard]] std::unique_ptr<Bootstrap> join(const Rendezvous& where, uint32_t rank, uint32_t size,
                                              std::chrono::milliseconds timeout,
                                              std::shared_ptr<Hub> hub, Diagnostics& diagnostics);

/// The same for a rank that has reached its hub already.
[[nodiscard]] std::unique_ptr<Bootstrap> join(Connected connected, uint32_t rank, uint32_t size,
                                              std::shared_ptr<Hub> hub, Diagnostics& diagnostics);

}  // namespace mscclc
