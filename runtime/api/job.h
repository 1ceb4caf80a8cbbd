// How ranks with a unique id form a job: one process hosts it, all ranks join it.
//
//   auto job = host_job({.size = 4}, diagnostics);      // one process; then job->id.text() to all
//   auto bootstrap = join_job(id, rank, 4, timeout, nullptr, diagnostics);          // all ranks
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/bootstrap.h"
#include "runtime/support/address/unique_id.h"

namespace mscclc {

class Hub;

struct HostOptions {
  uint32_t size = 0;                     ///< ranks of the job; 0: what the first rank says
  uint32_t rank = kNoRank;               ///< the rank that this process will be, for messages
  bool one_machine = false;              ///< listen at a unix socket only
  std::string interface = {};            ///< see choose_address()
  int family = AF_UNSPEC;                ///< see choose_address()
  std::chrono::milliseconds timeout{0};  ///< of every step of the job
  std::chrono::milliseconds silence = kSilence;  ///< a rank that says nothing so long is dead
};

struct HostedJob {
  UniqueId id;
  std::shared_ptr<Hub> hub;  ///< runs until it is destroyed; a rank of this process may own it
};

/// Makes an unguessable id, and starts the hub that serves it. Errors: no-interface,
/// cannot-listen.
[[nodiscard]] std::optional<HostedJob> host_job(const HostOptions& options,
                                                Diagnostics& diagnostics);

/// Keeps the hub of an id that this process has made until its first rank joins; from then on the
/// ranks that own_hub() gives it to own it together. From any thread, as own_hub().
void keep_hub(const UniqueId& id, std::shared_ptr<Hub> hub);
/// The hub of an id, for the join of a rank of this process. nullptr: another process serves the
/// id, such as the one that this process was forked from.
[[nodiscard]] std::shared_ptr<Hub> own_hub(const UniqueId& id);

/// Collective: returns when all ranks are here. `hub`: the job's, if this rank is to close it.
/// `timeout`: how long it waits for the others, here and at every step; the hub's, if that is less.
/// `gives_up`: that of the Rendezvous.
[[nodiscard]] std::unique_ptr<Bootstrap> join_job(
    const UniqueId& id, uint32_t rank, uint32_t size, std::chrono::milliseconds timeout,
    std::shared_ptr<Hub> hub, Diagnostics& diagnostics,
    std::function<bool(Diagnostics&)> gives_up = nullptr);

}  // namespace mscclc
