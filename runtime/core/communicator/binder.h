// Fitting a plan to a call: which bytes its ops move (bind.cc), where the caller's buffers of all
// ranks lie (bind_places.cc).
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/core/communicator/executable.h"

namespace mscclc {

/// One bind().
class Binder {
 public:
  Binder(Executable::State& executable, const CollectiveCall& asked, Diagnostics& diagnostics)
      : x_(executable),
        asked_(asked),
        diagnostics_(diagnostics),
        contract_(executable.plan->contract),
        pointers_{static_cast<uint8_t*>(const_cast<void*>(asked.input)),
                  static_cast<uint8_t*>(asked.output)},
        places_(executable.scratch.places) {}

  std::shared_ptr<BoundCall::State> run();
  /// True if run() would wait for the other ranks.
  bool waits();

 private:
  using Kind = BufferPlace::Kind;

  static Side side_of(uint32_t side) { return side == kInput ? Side::input : Side::output; }
  static const char* name_of(uint32_t side) { return side == kInput ? "input" : "output"; }

  std::shared_ptr<BoundCall::State> run_symmetric();
  std::shared_ptr<BoundCall::State> run_together();
  std::shared_ptr<BoundCall::State> try_together();
  std::shared_ptr<BoundCall::State> make();
  void describe();
  std::shared_ptr<BoundCall::State> blank();
  bool prepare();
  bool fit_to_size();
  bool check_size();
  bool empty() const;
  bool check_pointers();
  bool place_externals();
  bool place_flags();
  std::vector<CallMemory> memory_besides_flags() const;
  bool has_flags_in_place();
  bool check_rows(const BoundCall::State& made);
  bool choose_places(std::vector<uint8_t>& message);
  bool place_registered(uint32_t side, bool& registered);
  RankPlaces staged_places(uint32_t rank, bool in_place) const;
  bool same_calls(std::vector<std::vector<uint8_t>>& messages);
  bool take_places(const std::vector<std::vector<uint8_t>>& messages);
  bool exchange_places(bool able, std::vector<std::vector<uint8_t>>& messages);
  std::optional<uint64_t> buffer_of(const Switches::Members& members, uint32_t side) const;
  uint64_t offset_in_place(uint32_t rank, uint32_t side) const;
  bool place_symmetric();
  std::set<std::pair<uint64_t, Switches::Members>> buffers_to_join() const;
  bool join_buffers();
  uint8_t* address(uint32_t rank, uint32_t buffer);
  std::optional<Switches::Spot> spot(uint32_t rank, uint32_t buffer) const;
  const SwitchTeam* joined_team(uint64_t buffer, const Switches::Members& members) const;
  uint8_t* place_address(uint32_t rank, uint32_t side) const;
  const Memory* place_memory(uint32_t rank, uint32_t side) const;
  bool refuse_place(uint32_t rank, uint32_t side);
  bool write_programs(BoundCall::State& made);
  bool move_or_pack(BoundCall::State& made, const BlockPrograms::Places& places);
  bool check_fit(BoundCall::State& made);
  void shorten(BoundCall::State& made) const;
  void plan_copies(BoundCall::State& made) const;
  /// Of a buffer as ops address it: the caller's, or staging.
  uint64_t bytes(uint32_t rank, uint32_t side) const { return bytes(rank, side, pitch_); }
  /// Of this rank's own buffer of the caller.
  uint64_t callers_bytes(uint32_t side) const { return bytes(x_.rank, side, callers_pitch_); }
  uint64_t bytes(uint32_t rank, uint32_t side, const RowPitch& pitch) const {
    return chunking_->buffer_bytes(side_of(side), rank) +
           pitch.gaps_of(contract_, side_of(side), rank);
  }
  bool set_pitch();
  void copy_parts(uint32_t side, uint64_t begin, uint64_t end, std::vector<StagingCopy>& to) const;

  Executable::State& x_;
  const CollectiveCall& asked_;
  Diagnostics& diagnostics_;
  const Contract& contract_;
  uint8_t* const pointers_[2];
  Call call_;
  std::optional<Chunking> chunking_;
  RowPitch pitch_;          ///< of what ops address: the caller's buffers, or staging
  RowPitch callers_pitch_;  ///< of the caller's buffers
  CallFacts facts_;
  bool offered_[2] = {};             ///< staging that is new: no rank has mapped it before
  std::vector<RankPlaces>& places_;  ///< by rank; of ranks that are not addressed: as it was
};

}  // namespace mscclc
