// What joins this rank's device to another rank's. Plans rely on it: packets of LL128 need lines of
// 128 bytes that arrive whole, which only NVLink keeps together, and signals are atomic adds to a
// peer's memory, which not every path carries. Found once, when a communicator is created, and
// looked at when a plan is loaded (check_links()).
#pragma once

#include <cstdint>
#include <span>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "runtime/api/link.h"

namespace mscclc {

/// Checks that what this rank's ops send can go over its links, by rank. Errors (no-peer-access,
/// no-nvlink) say which op, and what to use instead.
bool check_links(const Program& plan, uint32_t rank, std::span<const Link> links,
                 Diagnostics& diagnostics);

/// True if the signals of this end must not be atomic adds: the rank's proxy, the only one that
/// counts them, then stores the count.
bool needs_stored_signals(const Channel& channel, std::span<const Link> links);

}  // namespace mscclc
