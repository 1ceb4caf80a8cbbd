// Inside an Executable: what is made once when a plan is loaded (executable.cc; load_memory.cc has
// its memory, load_lanes.cc its ways to other ranks), and what is made for each call (bind.cc,
// launch.cc).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/block_programs.h"
#include "executor/launch.h"
#include "executor/lower.h"
#include "executor/short_program.h"
#include "ir/program/program.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/core/communicator/call/call_cache.h"
#include "runtime/core/communicator/call/call_facts.h"
#include "runtime/core/communicator/call/placement.h"
#include "runtime/core/communicator/call/shared_board.h"
#include "runtime/core/communicator/compiled_kernels/kernel_choice.h"
#include "runtime/core/device/device_structs.h"
#include "runtime/core/device/region.h"
#include "runtime/core/device/slots.h"
#include "runtime/core/device/switches.h"
#include "runtime/core/group/group.h"
#include "runtime/core/proxy/proxy.h"
#include "runtime/support/bytes.h"

namespace mscclc {

/// A copy that a call does before or after its kernel.
struct StagingCopy {
  void* to;
  const void* from;
  uint64_t bytes;
};

/// Reports that the program of a thread block is too long; false.
[[nodiscard]] bool too_large(Diagnostics& diagnostics);

/// What of a call decides which kernel runs it.
struct KernelKey {
  uint32_t uses;  ///< device::Uses
  uint32_t program_bytes;
  Dtype dtype, accumulate;
  ReduceOp reduce;
  uint32_t in_short;  ///< the most operands of a short program's steps, or 0
  auto operator<=>(const KernelKey&) const = default;
};

struct BoundCall::State {
  const Executable::State* executable = nullptr;
  CallFacts facts;      ///< each launch numbers it
  bool is_call = true;  ///< false: there is nothing to move, and nothing is launched
  SlotPool::Slot slot;  ///< where the launch finds its programs; nullptr: it takes them along
  device::LaunchPlan launch{};
  BlockPrograms programs;         ///< launch.programs
  device::ShortProgram in_short;  ///< launch.in_short, if there is one
  CompiledCall own;
  std::vector<StagingCopy> before, after;

  /// What its launch reads on the device; empty: all travels with the launch.
  std::span<const uint8_t> in_slot() const;
};

struct Executable::State : std::enable_shared_from_this<Executable::State> {
  State(std::shared_ptr<Group> group, std::shared_ptr<const Program> plan,
        const LoadOptions& options);
  ~State();

  /// Collective: all that load() does.
  [[nodiscard]] bool load(Diagnostics& diagnostics);
  [[nodiscard]] std::shared_ptr<BoundCall::State> bind(const CollectiveCall& call,
                                                       Diagnostics& diagnostics);
  /// Executable::bind_waits().
  bool bind_waits(const CollectiveCall& call);
  [[nodiscard]] bool launch(const BoundCall::State& binding, StreamHandle stream,
                            Diagnostics& diagnostics);
  /// Puts copies and launch of a call on a stream.
  [[nodiscard]] bool enqueue(const BoundCall::State& binding, StreamHandle stream,
                             Diagnostics& diagnostics);
  /// Starts the kernel of a call.
  [[nodiscard]] bool start(const BoundCall::State& binding, StreamHandle stream,
                           Diagnostics& diagnostics);
  bool collective_bind() const { return options.zero_copy && access.any(); }

  const std::shared_ptr<Group> group;
  const std::shared_ptr<const Program> plan;
  const LoadOptions options;
  const uint32_t rank;
  const uint32_t element;  ///< bytes of an element of sentinel packets
  const PeerAccess access;
  const bool takes_pieces;    ///< calls may have CollectiveCall::row_pitch
  const bool staged_rows[2];  ///< by side: where it has rows, calls go through staging
  const Chunking capacity;
  const PlanUse use;
  const uint64_t parts;   ///< Chunking::parts_of_message()
  const uint32_t number;  ///< of this load in the communicator, the same on all ranks
  uint64_t binds = 0;     ///< collective ones so far

  uint64_t launches = 0;
  /// Executable::stamp_launches().
  uint64_t* stamps = nullptr;
  uint32_t stamp_words = 0;
  /// Of an executable whose calls are in no order with those of others; nullptr: they are, or no
  /// rank is beside this one.
  std::unique_ptr<CallBoard> own_board;
  /// Group::far_calls, or one of its own where its calls are in no order with those of others;
  /// nullptr: no lane leads anywhere.
  const std::shared_ptr<FarCalls> far_calls;

  RankProgram program;  ///< patched for the last binding ...
  /// ... whose parts have so many bytes, and whose rows such a pitch.
  std::optional<std::pair<uint64_t, uint64_t>> patched_size;
  std::vector<PeerMemory> connections;              ///< by rank: own, and of those that ops address
  std::shared_ptr<Memory> memory;                   ///< what only this rank's blocks see
  std::unique_ptr<Memory> faults;                   ///< a device::Fault per block
  std::unique_ptr<Memory> flushed;                  ///< PortQueue::flushed
  std::shared_ptr<SlotPool> slots;                  ///< for bindings
  std::vector<std::unique_ptr<LaneEnd>> lane_ends;  ///< of those whose proxies write here
  std::unique_ptr<Proxy> proxy;                     ///< nullptr: no port channels
  std::optional<WaitSlots> wait_slots;
  device::RankContext context{};            ///< as it stands in `memory` ...
  device::RankContext* contexts = nullptr;  ///< ... here
  uint64_t* calls_ended = nullptr;          ///< LaunchPlan::calls
  std::vector<device::ChannelEnd> ends;     ///< by channel
  BlockPrograms::Places where;              ///< semaphores and barriers

  /// Staging buffers of this rank, and those of peers as mapped here by rank; by side.
  std::shared_ptr<Memory> staging[2];
  std::vector<std::shared_ptr<Memory>> peer_staging[2];
  /// Allocates staging and appends its handle to a message.
  [[nodiscard]] bool offer_staging(uint32_t side, std::vector<uint8_t>& message,
                                   Diagnostics& diagnostics);
  /// Maps that of a rank whose handle begins `message`, if its ops are here.
  [[nodiscard]] bool map_staging(uint32_t peer, uint32_t side, std::span<const uint8_t>& message,
                                 Diagnostics& diagnostics);
  /// Collective: joins region and staging at the plan's switches.
  [[nodiscard]] bool join_switches(Diagnostics& diagnostics);
  Switches switches;

  /// Output chunks of this rank that the collective promises, as runs [first, end).
  struct ChunkRun {
    uint32_t first, end;
  };
  std::vector<ChunkRun> promised;
  /// Ranks whose input or output this rank's blocks address, and itself.
  std::vector<uint32_t> addressed;
  /// For bind(), which then allocates nothing: where all ranks' buffers lie; addresses of bases.
  std::vector<RankPlaces> places;
  std::vector<device::BaseAddress> bases;
  /// How many blocks the device holds at once, of kernels that hold all of the plan's: asked once
  /// each.
  std::map<KernelKey, uint32_t> fitting;
  std::unique_ptr<KernelChoice> compiled_kernels;  ///< nullptr: the interpreter runs all calls
  CallCache calls;  ///< unused if bind() is collective: ranks must do it together

  /// What ranks must load alike.
  struct Loaded {
    std::string call, hash;
    uint64_t max_bytes = 0;
    uint32_t element = 0;
    bool zero_copy = false, in_turn = false;
    std::span<const uint8_t> board = {};  ///< what only that rank says: the ticket of own_board
    bool is_like(const Loaded& other) const {
      return std::tie(call, hash, max_bytes, element, zero_copy, in_turn) ==
             std::tie(other.call, other.hash, other.max_bytes, other.element, other.zero_copy,
                      other.in_turn);
    }
  };

  bool stages(uint32_t rank, uint32_t side) const { return access.stages(rank, side); }

 private:
  [[nodiscard]] bool same_calls_far(const CallRecord& record, Diagnostics& diagnostics);
  void note_launch(const BoundCall::State& binding, StreamHandle stream);
  [[nodiscard]] bool prepare(Diagnostics& diagnostics);
  [[nodiscard]] bool check_plan(Diagnostics& diagnostics);
  [[nodiscard]] bool same_launch(const CallFacts& facts, Diagnostics& diagnostics) const;
  [[nodiscard]] bool check_fit(Diagnostics& diagnostics) const;
  [[nodiscard]] bool lay_out(Diagnostics& diagnostics);
  void load_compiled_kernels();
  void prepare_binds();
  [[nodiscard]] bool allocate(Diagnostics& diagnostics);
  GraphsEnd graphs_end() const;
  bool joins_switch() const;
  [[nodiscard]] PoolPiece take_staging(uint32_t side, uint64_t bytes, Diagnostics& diagnostics);
  /// A piece of what executables in turn share; `slot`: of Group::in_turn.
  [[nodiscard]] PoolPiece take_in_turn(uint32_t slot, uint64_t bytes, const std::string& what,
                                       Diagnostics& diagnostics);
  [[nodiscard]] bool take_region(Diagnostics& diagnostics);
  /// May others' scratch lie where this plan's does?
  bool shares_scratch() const;
  /// Memory that peers map: in a block of its own where a switch joins it.
  [[nodiscard]] PoolPiece take_shared(uint64_t bytes, const std::string& what,
                                      Diagnostics& diagnostics);
  [[nodiscard]] bool describe(std::vector<uint8_t>& message, Diagnostics& diagnostics);
  /// Takes what a rank loads from the front of its message.
  [[nodiscard]] bool read_loaded(ByteReader& message, Loaded& loaded,
                                 Diagnostics& diagnostics) const;
  [[nodiscard]] bool same_plans(const std::vector<std::vector<uint8_t>>& messages,
                                Diagnostics& diagnostics) const;
  [[nodiscard]] bool open_board(SharedBoard& board,
                                const std::vector<std::vector<uint8_t>>& messages,
                                Diagnostics& diagnostics);
  [[nodiscard]] bool connect(const std::vector<std::vector<uint8_t>>& messages,
                             Diagnostics& diagnostics);
  [[nodiscard]] bool connect_peer(uint32_t peer, std::span<const uint8_t> message,
                                  Diagnostics& diagnostics);
  /// Takes where a peer's counts and scratch lie from the front of `message`, and maps them if ops
  /// or channels of this rank lead there. `apart`: scratch has a handle of its own.
  [[nodiscard]] bool map_region(uint32_t peer, bool apart, std::span<const uint8_t>& message,
                                Diagnostics& diagnostics);
  [[nodiscard]] bool await_lanes(std::vector<uint8_t>& message, Diagnostics& diagnostics);
  [[nodiscard]] bool take_lane_offer(uint32_t peer, ByteReader& message, Diagnostics& diagnostics);
  [[nodiscard]] bool open_lanes(Proxy::Ports& ports, Diagnostics& diagnostics);
  [[nodiscard]] bool start_proxy(Diagnostics& diagnostics);
  std::shared_ptr<Memory> take_memory(uint32_t peer, const PieceHandle& handle, uint64_t bytes,
                                      Diagnostics& diagnostics);
  /// Do blocks of this rank read or write memory of that peer themselves?
  bool blocks_reach(uint32_t peer) const;
  /// Is this rank's scratch written from other nodes only?
  bool only_far_lanes_write() const;
  /// Does the proxy of `from` send to this rank?
  bool proxy_sends_from(uint32_t from) const;
  /// A peer to or from which a lane leads; with its offer, if it has come.
  LanePeer lane_peer(uint32_t peer) const;
  /// Ends the communicator; from any thread, and when it has gone, too.
  LaneFailed fail_group() const;
  [[nodiscard]] bool write_program(Diagnostics& diagnostics);
  std::vector<device::ChannelEnd> channel_ends() const;
  /// Does the proxy send what this end of a channel signals?
  bool goes_by_proxy(uint32_t channel) const;
  uint64_t memory_bytes() const;
  uint64_t counts() const;
  uint32_t blocks() const { return plan->ranks[rank].blocks; }
  bool needs(uint32_t peer) const { return layouts_[peer] != nullptr && peer != rank; }

  std::string hash_;                   ///< plan_digest()
  std::vector<uint8_t> board_ticket_;  ///< of own_board, if this rank makes it
  /// Of this rank and of those whose memory it addresses.
  std::vector<std::shared_ptr<const RegionLayout>> layouts_;
  bool scratch_in_call_ = false;                   ///< known to be so
  PoolPiece region_;                               ///< connections[rank]: counts, or all
  PoolPiece scratch_;                              ///< empty: in the region
  std::vector<std::vector<uint8_t>> lane_offers_;  ///< by peer: of its LaneEnd for this rank
};

}  // namespace mscclc
