// A lane over verbs, to a rank of another machine: reliable queue pairs, over which the device
// writes the peer's memory. A put is one or more RDMA writes; a signal adds to a count there, or is
// a message that the peer's processor carries out (SignalMode). On one queue pair all keeps its
// order; with several, the blocks of the peer's memory are spread among them, and a signal is sent
// when what was put over the others has arrived.
//
// A socket beside the queue pairs says when the peer goes or has died (control.h).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/api/lane.h"
#include "runtime/network/verbs/adapter.h"

namespace mscclc::verbs {

/// How the device reads memory of this rank.
struct Source {
  std::optional<uint32_t> key = {};  ///< nullopt: it cannot; bytes are copied first
  std::string error = {};            ///< it should, but cannot
};
/// Called by the thread that gives orders. The memory stays registered as long as it is there.
using FindSource = std::function<Source(const void* from, uint64_t bytes)>;

/// Opens the lane to a far end (await_verbs_lane()). nullptr: reported (lane-failed). Orders that
/// fail (lane-failed) name the peer; so does LanePeer::failed, where no order waits. A peer whose
/// far end has gone in good order needs none any more: then they count as done. Counts that are
/// signalled begin at 0, and nothing else changes them.
[[nodiscard]] std::unique_ptr<Lane> open_verbs_lane(const LanePeer& peer,
                                                    std::shared_ptr<Adapter> adapter,
                                                    FindSource find_source,
                                                    std::chrono::milliseconds timeout,
                                                    Diagnostics& diagnostics);

}  // namespace mscclc::verbs
