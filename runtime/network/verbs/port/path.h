// The way between two queue pairs: what each end says of itself, and how a pair is connected.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ir/support/result.h"
#include "runtime/network/verbs/port/port.h"

namespace mscclc::verbs {

/// A port, as the other end needs to know it.
struct PathEnd {
  uint8_t link_layer = 0, gid_type = 0;
  uint8_t mtu = 0;           ///< ibv_mtu
  uint8_t most_atomics = 0;  ///< that it answers
  uint16_t lid = 0;
  std::array<uint8_t, 16> gid = {};
};
PathEnd path_end(const Port& port);
/// Why no path joins them.
std::optional<Error> mismatch(const PathEnd& here, const PathEnd& there);

/// A queue pair, as the other end needs to know it.
struct QueueEnd {
  uint32_t number = 0;
  uint32_t first = 0;  ///< the number of its first packet
};

/// Such a number, which cannot be guessed.
uint32_t random_packet_number();

/// Makes a new queue pair ready to be connected. `access`: what its peer may do (ibv_access_flags).
Result<void> prepare(QueuePair& pair, const Port& port, const VerbsOptions& options, int access);
/// Connects it: first so that it receives, then so that it sends.
Result<void> connect(QueuePair& pair, const Port& port, const VerbsOptions& options,
                     uint32_t own_first, const PathEnd& peer, const QueueEnd& peer_queue);

}  // namespace mscclc::verbs
