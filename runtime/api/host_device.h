// This machine's processor and shared memory as a device: what a job runs on without GPUs, and what
// the tests of the runtime run on. Ranks are processes, threads of one process, or both. Ranks of
// one node share memory; between nodes, lanes go over sockets (runtime/network) or verbs
// (runtime/network/verbs), and only ports lead there.
#pragma once

#include <memory>
#include <optional>

#include "runtime/api/device.h"

namespace mscclc {

/// The kinds of lanes between host devices of one node.
enum class HostLanes {
  copies,   ///< the proxy copies to the peer's memory, which is mapped
  messages  ///< the peer does it: its memory need not be mapped (message_lane.h)
};

/// The kinds of lanes between nodes.
enum class FarLanes {
  sockets,  ///< TCP
  verbs     ///< InfiniBand and RoCE, through libibverbs
};

/// A device for one rank. nullptr: reported (the server of descriptors could not start).
/// `link`: what it says joins it to others of its node; tests say what GPUs would. `lanes`: the
/// same on all ranks; messages where all are on one node. `node`: simulates that the rank is on
/// this one of several nodes into which the machine is divided. Otherwise a node is a machine, or
/// what of it is in one network namespace. `far`: the same on all ranks; nullopt: as MSCCLC_LANE
/// says.
[[nodiscard]] std::unique_ptr<Device> make_host_device(Diagnostics& diagnostics,
                                                       const Link& link = {},
                                                       HostLanes lanes = HostLanes::copies,
                                                       std::optional<uint32_t> node = std::nullopt,
                                                       std::optional<FarLanes> far = std::nullopt);

/// True if a host device of this process has made the stream, and none has destroyed it. From any
/// thread.
[[nodiscard]] bool is_host_stream(StreamHandle stream);

}  // namespace mscclc
