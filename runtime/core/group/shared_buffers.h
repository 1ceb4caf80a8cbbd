// The registered buffers of a communicator, and which of them ranks have joined at a switch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/api/device.h"
#include "runtime/core/group/buffer_overlaps.h"

namespace mscclc {

/// Memory of this rank that peers have mapped, and theirs as mapped here.
struct SharedBuffer {
  uint8_t* address = nullptr;  ///< own
  uint64_t bytes = 0;
  std::unique_ptr<HeldMemory> held;            ///< own; nullptr: 0 bytes
  std::vector<std::unique_ptr<Memory>> peers;  ///< by rank; nullptr: own, or 0 bytes
  /// The whole of it, joined at a switch as the only region, by members; nullptr: that cannot be.
  std::map<std::vector<uint32_t>, std::unique_ptr<SwitchTeam>> teams;
};

/// Numbers are the same on all ranks, as ranks register together. Thread safety: one thread at a
/// time.
class SharedBuffers {
 public:
  using Members = std::vector<uint32_t>;

  /// Its number. `overlaps`: what each rank has found for its own buffer (overlaps_of()).
  uint64_t add(std::shared_ptr<SharedBuffer> buffer,
               const std::vector<std::vector<BufferOverlap>>& overlaps);
  /// REQUIRES: it is there.
  std::shared_ptr<SharedBuffer> remove(uint64_t number);
  /// nullptr: there is none of this number.
  SharedBuffer* find(uint64_t number) const;
  const std::map<uint64_t, std::shared_ptr<SharedBuffer>>& all() const { return all_; }

  /// Those of this rank that share memory with one that is about to be added. Memory that was freed
  /// since it was registered is what other ranks have mapped no more.
  std::vector<BufferOverlap> overlaps_of(const SharedBuffer& buffer) const;
  const BufferOverlaps& overlaps() const { return overlaps_; }

  /// All ranks have tried to join a buffer of theirs, for these members.
  void join(uint64_t number, const Members& members) { joined_.emplace(number, members); }
  bool is_joined(uint64_t number, const Members& members) const {
    return joined_.count({number, members}) > 0;
  }
  /// Says which of the joined buffers are still here, by a byte each.
  void append_joined(std::vector<uint8_t>& message) const;
  /// Takes what every rank has said from the front of its message, and forgets joined buffers that
  /// no rank has any more. False: a message is cut off.
  [[nodiscard]] bool forget_joined(std::vector<std::vector<uint8_t>>& messages);

 private:
  std::map<uint64_t, std::shared_ptr<SharedBuffer>> all_;
  uint64_t next_ = 0;
  BufferOverlaps overlaps_;
  /// Buffers and members that all ranks have tried to join: the same on all of them.
  std::set<std::pair<uint64_t, Members>> joined_;
};

}  // namespace mscclc
