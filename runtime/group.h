// What a communicator shares with all that it has made: bootstrap, device, failure, and exchanges
// in which every rank learns whether every rank could do its part.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/device.h"
#include "runtime/failure.h"

namespace mscclc {

/// Memory of this rank that peers have mapped, and theirs as mapped here.
struct SharedBuffer {
  uint8_t* address = nullptr;  ///< own
  uint64_t bytes = 0;
  std::vector<std::unique_ptr<Memory>> peers;  ///< by rank; nullptr: own, or 0 bytes
  /// The whole of it, joined at a switch as the only region, by members; nullptr: that cannot be.
  std::map<std::vector<uint32_t>, std::unique_ptr<SwitchTeam>> teams;
};

struct Group {
  std::unique_ptr<Bootstrap> bootstrap;
  std::shared_ptr<Device> device;
  std::shared_ptr<Failure> failure;
  std::chrono::milliseconds timeout;
  /// Registered buffers by number, which is the same on all ranks.
  std::map<uint64_t, std::shared_ptr<SharedBuffer>> buffers;
  uint64_t next_buffer = 0;
  /// Buffers and members that all ranks have tried to join: the same on all of them.
  std::set<std::pair<uint64_t, std::vector<uint32_t>>> joined;

  uint32_t rank() const { return bootstrap->rank(); }
  uint32_t size() const { return bootstrap->size(); }

  /// Collective: gives every rank the messages of all. `able`: this rank could make its message;
  /// otherwise the others learn the last error of `diagnostics`. False if any rank was not able:
  /// reported (peer-failed) by the others.
  bool exchange(bool able, std::span<const uint8_t> own, std::string_view what,
                std::vector<std::vector<uint8_t>>& all, Diagnostics& diagnostics);
  /// Collective: true on all ranks if it is on all.
  bool agree(bool able, std::string_view what, Diagnostics& diagnostics);
  /// Blocks of this rank have given up, or were told to: learns, with the other ranks, which rank
  /// did not answer. `awaited`: ranks that they waited for. Once; waits some seconds at most.
  void report_hang(const std::vector<uint32_t>& awaited, const std::string& why);
  /// Ends everything, here and on the other ranks.
  void fail(const std::string& code, const std::string& why);
};

/// Maps a peer's memory; errors name the peer.
std::unique_ptr<Memory> import_from(Device& device, uint32_t peer, const MemoryHandle& handle,
                                    Diagnostics& diagnostics);
/// Maps what other ranks have encoded; an empty handle is no memory. `peers` and `handles` by rank.
bool import_all(Device& device, const std::vector<std::vector<uint8_t>>& handles, uint32_t own,
                std::vector<std::unique_ptr<Memory>>& peers, Diagnostics& diagnostics);

}  // namespace mscclc
