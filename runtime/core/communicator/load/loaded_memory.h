// The memory that a plan takes when it is loaded, and that of the other ranks as mapped here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/launch.h"
#include "executor/lower.h"
#include "runtime/api/device.h"
#include "runtime/core/communicator/load/loaded_plan.h"
#include "runtime/core/device/region.h"
#include "runtime/core/group/group.h"

namespace mscclc {

class LoadedMemory {
 public:
  /// `loaded` must outlive it.
  explicit LoadedMemory(const LoadedPlan& loaded) : x_(loaded) {}
  LoadedMemory(const LoadedMemory&) = delete;
  LoadedMemory& operator=(const LoadedMemory&) = delete;

  /// Finds out where counts and scratch of this rank lie, and those of the ranks that its program
  /// or its channels address.
  [[nodiscard]] bool lay_out(const RankProgram& program, Diagnostics& diagnostics);
  /// Allocates what lay_out() has found, faults, and `program_bytes` for what only this rank's
  /// blocks see. `scratch_in_call`: all accesses to scratch lie within the calls of its rank.
  [[nodiscard]] bool allocate(uint64_t program_bytes, bool scratch_in_call,
                              Diagnostics& diagnostics);
  /// Appends what other ranks need to map this one's region: whether scratch has a handle of its
  /// own, the handles.
  [[nodiscard]] bool offer_region(std::vector<uint8_t>& message, Diagnostics& diagnostics) const;
  /// Takes where a peer's counts and scratch lie from the front of `message`, and maps them if ops
  /// or channels of this rank lead there. `apart`: scratch has a handle of its own.
  [[nodiscard]] bool map_region(uint32_t peer, bool apart, std::span<const uint8_t>& message,
                                Diagnostics& diagnostics);

  /// Allocates staging and appends its handle to a message.
  [[nodiscard]] bool offer_staging(uint32_t side, std::vector<uint8_t>& message,
                                   Diagnostics& diagnostics);
  /// Maps that of a rank whose handle begins `message`, if its ops are here.
  [[nodiscard]] bool map_staging(uint32_t peer, uint32_t side, std::span<const uint8_t>& message,
                                 Diagnostics& diagnostics);
  /// Not all ranks have mapped it.
  void drop_staging(uint32_t side) { staging_[side].reset(); }
  /// This rank's, or that of a peer as mapped here; nullptr: there is none.
  const Memory* staging(uint32_t of, uint32_t side) const;

  /// By rank: own, and of those that ops address.
  const std::vector<PeerMemory>& regions() const { return regions_; }
  /// Counts and scratch of this rank, where they are one piece.
  uint64_t region_bytes() const { return layouts_[x_.rank]->bytes(); }
  /// Where counts of this rank's ends of channels lie, and those of their partners.
  std::vector<device::ChannelEnd> channel_ends() const;
  /// What only this rank's blocks see.
  uint8_t* program() const { return program_->data(); }
  /// One for each block.
  device::Fault* faults() const { return reinterpret_cast<device::Fault*>(faults_->data()); }

 private:
  bool needs(uint32_t peer) const { return layouts_[peer] != nullptr && peer != x_.rank; }
  [[nodiscard]] bool take_region(bool scratch_in_call, Diagnostics& diagnostics);
  /// May others' scratch lie where this plan's does?
  bool shares_scratch() const;
  /// Memory that peers map: in a block of its own where a switch joins it.
  [[nodiscard]] PoolPiece take_shared(uint64_t bytes, const std::string& what,
                                      Diagnostics& diagnostics);
  /// A piece of what executables in turn share; `slot`: of GroupMemory::in_turn.
  [[nodiscard]] PoolPiece take_in_turn(uint32_t slot, uint64_t bytes, const std::string& what,
                                       Diagnostics& diagnostics);
  [[nodiscard]] PoolPiece take_staging(uint32_t side, uint64_t bytes, Diagnostics& diagnostics);
  std::shared_ptr<Memory> map(uint32_t peer, const PieceHandle& handle, uint64_t bytes,
                              Diagnostics& diagnostics);
  /// Do blocks of this rank read or write memory of that peer themselves?
  bool blocks_reach(uint32_t peer) const;
  /// Is this rank's scratch written from other nodes only?
  bool only_far_lanes_write() const;

  const LoadedPlan& x_;
  /// Of this rank and of those whose memory it addresses.
  std::vector<std::shared_ptr<const RegionLayout>> layouts_;
  PoolPiece region_;   ///< regions_[rank]: counts, or all
  PoolPiece scratch_;  ///< empty: in the region
  std::vector<PeerMemory> regions_;
  std::shared_ptr<Memory> program_;
  std::unique_ptr<Memory> faults_;
  /// Of this rank, and of peers as mapped here by rank; by side.
  std::shared_ptr<Memory> staging_[2];
  std::vector<std::shared_ptr<Memory>> peer_staging_[2];
};

}  // namespace mscclc
