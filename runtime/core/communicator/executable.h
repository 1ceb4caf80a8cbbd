// Inside an Executable: what is made once when a plan is loaded (load.cc), and what is made for
// each call (bind.cc); launcher.h launches them.
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
#include "executor/rows/row_steps.h"
#include "executor/short_program.h"
#include "ir/program/program.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/api/kernel_maker.h"
#include "runtime/core/communicator/call/call_cache.h"
#include "runtime/core/communicator/call/call_facts.h"
#include "runtime/core/communicator/call/place_externals.h"
#include "runtime/core/communicator/call/place_flags.h"
#include "runtime/core/communicator/call/placement.h"
#include "runtime/core/communicator/call/shared_board.h"
#include "runtime/core/communicator/compiled_kernels/kernel_choice.h"
#include "runtime/core/communicator/compiled_kernels/moved_calls.h"
#include "runtime/core/communicator/launcher.h"
#include "runtime/core/communicator/load/loaded_lanes.h"
#include "runtime/core/communicator/load/loaded_memory.h"
#include "runtime/core/communicator/load/loaded_plan.h"
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

/// Reports why programs could not be packed; false.
[[nodiscard]] bool too_large(const BlockPrograms& programs, Diagnostics& diagnostics);

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
  SlotPool::Slot slot;  ///< where the launch finds its programs; nullptr: it takes them along
  device::LaunchPlan launch{};
  BlockPrograms programs;         ///< launch.programs
  device::ShortProgram in_short;  ///< launch.in_short, if there is one
  CompiledCall compiled;
  bool is_chosen = false;  ///< whether a compiled kernel runs it: the kernels were there
  std::vector<StagingCopy> before, after;

  /// Lets a compiled kernel run it, if there is one that can.
  void choose_kernel(KernelChoice* kernels);
  /// Gives it a slot, if it needs one. False: reported.
  [[nodiscard]] bool place(SlotPool& slots, Diagnostics& diagnostics);
  /// What its launch reads on the device; empty: all travels with the launch.
  std::span<const uint8_t> in_slot() const;
};

/// What of a plan stands in memory of the device, and what calls need to name it.
struct PlanOnDevice {
  std::shared_ptr<SlotPool> slots;  ///< for calls
  Switches switches;
  std::optional<WaitSlots> wait_slots;
  device::RankContext context{};            ///< as it stands in LoadedPlan's memory ...
  device::RankContext* contexts = nullptr;  ///< ... here
  uint64_t* calls_ended = nullptr;          ///< LaunchPlan::calls
  std::vector<device::ChannelEnd> ends;     ///< by channel
  BlockPrograms::Places where;              ///< semaphores and barriers
  device::RowFunctions rows;                ///< where blocks of the device run them
};

/// What bind() uses from call to call, so that it allocates nothing.
struct BindScratch {
  /// What the program is fitted to: the bytes of a part, the pitch of its rows, and the granule.
  std::optional<std::tuple<uint64_t, uint64_t, uint32_t>> fitted_size;
  uint64_t binds = 0;  ///< collective ones so far
  /// Output chunks of this rank that the collective promises, as runs [first, end).
  struct ChunkRun {
    uint32_t first, end;
  };
  std::vector<ChunkRun> promised;
  /// Ranks whose input or output this rank's blocks address, and itself.
  std::vector<uint32_t> addressed;
  /// Where all ranks' buffers lie; addresses of bases.
  std::vector<RankPlaces> places;
  std::vector<device::BaseAddress> bases;
  std::vector<BlockPrograms::Places::External> externals;  ///< of the call at hand
  std::vector<BlockPrograms::Places::Flags> flags;         ///< of all calls: the first one's
  /// How many blocks the device holds at once, of kernels that hold all of the plan's: asked once
  /// each.
  std::map<KernelKey, uint32_t> fitting;
  CallCache calls;  ///< unused if bind() is collective: ranks must do it together
  MovedCalls moved;
};

/// A plan that is loaded.
struct Executable::State : LoadedPlan, std::enable_shared_from_this<Executable::State> {
  State(std::shared_ptr<RankGroup> group, std::shared_ptr<const Program> plan,
        const LoadOptions& options)
      : LoadedPlan(std::move(group), std::move(plan), options), memory(*this), lanes(*this) {}

  [[nodiscard]] std::shared_ptr<BoundCall::State> bind(const CollectiveCall& call,
                                                       Diagnostics& diagnostics);
  /// Executable::bind_waits().
  bool bind_waits(const CollectiveCall& call);
  bool uses_board_of_all() const { return options.in_turn || options.in_order; }

  bool rounds_on_the_way = false;  ///< Rounding::each_op, as far as it is proved
  RankProgram program;             ///< fitted to the last call
  LoadedMemory memory;
  LoadedLanes lanes;
  PlanOnDevice on_device;
  std::unique_ptr<KernelChoice> compiled_kernels;  ///< nullptr: the interpreter runs all calls
  /// Kernels that are being compiled for it; nullptr: none are.
  std::shared_ptr<const OrderedKernels> kernels_to_come;
  /// Of an executable whose calls are in no order with those of others; nullptr: they are, or no
  /// rank is beside this one.
  std::unique_ptr<CallBoard> own_board;
  BindScratch scratch;
  Launcher launcher{*this};
};

/// Collective: makes all that an executable has. False: reported, and no rank has loaded it.
[[nodiscard]] bool load(Executable::State& executable, Diagnostics& diagnostics);

}  // namespace mscclc
