// All ranks of a plan on one GPU, in one process: their memory, and calls that run on it. For
// comparing the CUDA machine with the simulator.
//
// One launch holds the blocks of all ranks, so that they run at once whatever the machine does with
// several launches. To the kernel they are blocks of one rank that owns all channels: those of rank
// r are numbered after those of the ranks before it. Or each rank has a launch of its own, as in a
// job (Options::apart): then several calls may be queued, and compiled kernels run them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "executor/block_programs.h"
#include "executor/launch.h"
#include "executor/lower.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc::cuda {

class CudaRanks {
 public:
  /// The program must outlive it.
  explicit CudaRanks(const Program& program);
  ~CudaRanks();
  CudaRanks(const CudaRanks&) = delete;
  CudaRanks& operator=(const CudaRanks&) = delete;

  const Program& program() const;
  /// True if this machine has a GPU that the kernel can run on.
  static bool available();
  /// How much longer than a GPU this takes for the same: 1, or many times on fibers of the host.
  static uint32_t slowness();

  /// Lowers the program. Once, before all else. `rows`: as the kernels have it that run row
  /// functions (executor/compiled/fused_rows.h).
  [[nodiscard]] bool build(Diagnostics& diagnostics, RowSteps rows = RowSteps::apart);

  /// Starts a call of one rank on a stream; returns a cudaError_t.
  using Start = std::function<int(const device::LaunchPlan& plan, void* stream)>;
  /// A rank's part in a call.
  struct RankCall {
    uint32_t rank;
    const BlockPrograms& programs;
    const BlockPrograms::Places& places;
    /// Packs it as if its memory lay elsewhere.
    std::function<bool(const BlockPrograms::Places&, BlockPrograms&)> pack;
  };
  /// A compiled kernel for a call of a rank, whose launch it may change; none: the
  /// interpreter runs it.
  using ChooseKernel = std::function<Start(const RankCall& call, device::LaunchPlan& plan)>;

  struct Options {
    bool in_place = false;
    /// The caller's buffers begin a few elements after a line, a different number at every rank and
    /// buffer.
    bool shifted = false;
    /// All of the caller's buffers begin so many bytes after a line.
    uint32_t offset = 0;
    /// Programs travel in the parameters of the launch if they are short enough.
    bool carried = true;
    /// Each rank has a launch of its own.
    bool apart = false;
    /// The same by short programs, for ranks that have one; without `apart` only if all have.
    bool in_short = false;
    /// A rank that is not launched, where each has a launch of its own.
    uint32_t silent = kNone;
    /// By the kernel that runs all plans.
    bool generic = false;
    /// Threads of a block, at most.
    uint32_t threads = 1024;
    /// Calls that a run queues, on caller's buffers of their own. REQUIRES: one, or `apart`.
    uint32_t calls = 1;
    /// The number of the first call of all.
    uint64_t first_call = 0;
    /// The input of each call but the first is the output of the one before it. REQUIRES: all ranks
    /// have inputs as long as outputs.
    bool chained = false;
    /// Calls may begin before the one ahead has ended. REQUIRES: `apart`.
    bool early = false;
    /// Bit i: call i lets the next one begin as soon as the one ahead of it has ended.
    uint32_t frees_next = 0;
    /// Switch operands have an address at the switch, where they lie alike at all members. On the
    /// host alone.
    bool multicast = false;
    ChooseKernel compiled_kernel = {};  ///< REQUIRES: `apart`
    /// Words of a row of stamps (executor/stamps.h); 0: none.
    uint32_t stamp_words = 0;
    /// The test raises the flags of inputs itself; else all have been raised before a run.
    bool own_flags = false;
    /// Blocks are counted when they begin (LaunchPlan::begun).
    bool counts_begun = false;
  };
  /// Allocates and uploads what a call needs; packet slots are empty, counts zero.
  [[nodiscard]] bool prepare(const Call& call, const Options& options, Diagnostics& diagnostics);
  /// True if a fast kernel exists for calls like the prepared one; otherwise the generic one
  /// runs.
  bool has_fast_kernel() const;
  /// True if all ranks of the prepared call have short programs, and run them.
  bool in_short() const;
  /// True if the prepared call has operands with an address at a switch.
  bool has_multicast() const;
  /// Runs one call, or Options::calls, and waits for the end. Waits that were given up are reported
  /// and give false; prepare() makes it usable again.
  [[nodiscard]] bool run(Diagnostics& diagnostics);
  /// Raises a flag of an input once, by its number over all arrays of the plan. From any thread,
  /// also during a run.
  void raise(uint32_t rank, uint32_t flag);
  /// Where a buffer of the prepared call lies, for a thread that writes it during a run. On the
  /// host alone.
  uint8_t* address(uint32_t rank, uint32_t buffer) const;
  /// What the blocks of all ranks have stamped, a row each.
  [[nodiscard]] bool read_stamps(std::vector<uint64_t>& words, Diagnostics& diagnostics) const;
  /// The same for several calls in a row, between which ranks do not wait for each other; on the
  /// stream of each rank `before(rank, call)` and `after(rank, call)` come with each call.
  /// REQUIRES: Options::apart.
  using Hook = std::function<void(uint32_t rank, uint32_t call)>;
  [[nodiscard]] bool run_calls(uint32_t calls, const Hook& before, const Hook& after,
                               Diagnostics& diagnostics);
  /// Nanoseconds after which a wait is given up; 2 s unless set, before prepare(); 0: never.
  void set_patience(uint64_t nanoseconds);
  /// Makes all waits of the present call give up, and of those that follow. From any thread.
  void abort();
  /// Options::silent of the runs that follow.
  void silence(uint32_t rank);
  /// How many blocks have begun since prepare(). REQUIRES: Options::counts_begun.
  uint32_t begun() const;
  /// What the blocks of all ranks have counted, as LaunchPlan::calls.
  [[nodiscard]] bool read_counts(std::vector<uint64_t>& words, Diagnostics& diagnostics) const;
  /// Why a block gave up in the last call.
  device::Fault fault(uint32_t rank, uint32_t block) const;

  /// The device's clock, in nanoseconds. Where threads of blocks are fibers, it goes on only when
  /// nothing can move.
  static uint64_t nanoseconds();

  /// Copies the whole of a buffer of a rank from or to host memory. `call`: of those that a run
  /// queues, whose caller's buffer it is.
  [[nodiscard]] bool write(uint32_t rank, uint32_t buffer, const uint8_t* from,
                           Diagnostics& diagnostics, uint32_t call = 0);
  [[nodiscard]] bool read(uint32_t rank, uint32_t buffer, uint8_t* to, Diagnostics& diagnostics,
                          uint32_t call = 0) const;
  /// The same of an external of the plan, which all calls that a run queues have in common.
  [[nodiscard]] bool write_external(uint32_t rank, uint32_t external, const uint8_t* from,
                                    Diagnostics& diagnostics);
  [[nodiscard]] bool read_external(uint32_t rank, uint32_t external, uint8_t* to,
                                   Diagnostics& diagnostics) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace mscclc::cuda
