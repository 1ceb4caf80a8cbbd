// All ranks of a plan on this machine: their memory, and calls that run on it.
//
// A rank begins its next call when its blocks have ended the last one, whatever the other ranks
// do: a rank may be one call or several ahead. Packet flags go on counting from run to run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/cpu/fiber.h"
#include "executor/lower.h"
#include "executor/simulator/machine/adversary.h"
#include "executor/simulator/machine/memory.h"
#include "executor/simulator/machine/state.h"
#include "ir/support/precondition.h"

namespace mscclc {

/// What the caller of a collective does at every rank around every call of a plan. Ranks are those
/// of the plan, and `call` counts its calls in this run.
class CallHooks {
 public:
  virtual ~CallHooks() = default;
  virtual void before(uint32_t rank, uint64_t call) = 0;
  virtual void after(uint32_t rank, uint64_t call) = 0;
};

class Cluster {
 public:
  /// The program must outlive the cluster. `name`: of a plan in a set, for messages.
  explicit Cluster(const Program& program, std::string name = "")
      : program_(program), name_(std::move(name)) {}

  /// Lowers the program. Once, before all else.
  [[nodiscard]] bool build(Diagnostics& diagnostics, RowSteps rows = RowSteps::together);
  /// Blocks run on these stacks, which live longer, instead of its own.
  void use_stacks(FiberPool& stacks) { fibers_ = &stacks; }
  /// From the next call on sums are handed to row functions so. REQUIRES: build().
  [[nodiscard]] bool choose_rows(RowSteps rows, Diagnostics& diagnostics);
  /// Makes memory and device program fit a call. `poison`: fills plain scratch with a pattern.
  [[nodiscard]] bool prepare(const Call& call, bool in_place, bool poison,
                             Diagnostics& diagnostics);

  /// Runs `calls` calls on all ranks. False: it hangs (reported), or the system has no memory.
  /// Warns of ports that still read a caller's buffer when the call returns. With an adversary
  /// blocks are run by strands, accesses are late at random (seed 0: only those that it holds).
  [[nodiscard]] bool run(uint64_t calls, uint64_t seed, CallHooks& hooks, Diagnostics& diagnostics,
                         const Adversary* adversary = nullptr);
  /// Notes flags that the last run has notified before their regions were there, in words.
  void note_early_flags(std::vector<std::string> flags) { early_flags_ = std::move(flags); }
  /// Reports bytes written beside a buffer, and flags that were notified too early.
  [[nodiscard]] bool check_guards(Diagnostics& diagnostics) const;

  const Program& program() const { return program_; }
  /// " of 'a.json'", to be put after a rank; "" if the plan is alone.
  std::string of_plan() const { return name_.empty() ? "" : " of '" + name_ + "'"; }
  const DeviceProgram& device() const { return device_; }
  const Call& call() const { return call_; }
  const std::vector<SimRank>& states() const { return states_; }
  std::vector<SimRank>& states() { return states_; }
  uint8_t* data(uint32_t rank, uint32_t buffer) const { return addresses_[rank][buffer]; }
  uint64_t bytes(uint32_t rank, uint32_t buffer) const {
    return device_.ranks[rank].buffers[buffer].bytes;
  }
  /// By external: its memory at a rank. REQUIRES: place().
  std::span<uint8_t* const> externals(uint32_t rank) const {
    precondition(rank < states_.size());
    return states_[rank].externals;
  }
  uint64_t external_bytes(uint32_t rank, uint32_t external) const {
    return states_[rank].external_layouts[external].bytes();
  }
  bool is_callers(uint32_t rank, const uint8_t* address) const;
  /// The number of the next call, which packet flags and copies go by.
  uint64_t next_call() const { return next_call_; }
  void set_next_call(uint64_t number) { next_call_ = number; }
  /// As if nothing had been run yet: what is prepared next gets new memory, and call 0.
  void restart() {
    forget_memory();
    next_call_ = 0;
  }

  // The steps of prepare() and run(), for sets of plans (cluster_set.h).

  /// Makes the device program fit a call. Scratch lies as a call with parts of `capacity` bytes
  /// needs it. REQUIRES: they are not shorter than the call's.
  [[nodiscard]] bool fit(const Call& call, uint64_t capacity, Diagnostics& diagnostics);
  /// Makes memory at all ranks; `poison` as in prepare(). REQUIRES: fit().
  [[nodiscard]] bool place_all(bool in_place, bool poison, Diagnostics& diagnostics);
  /// Bytes of all scratch of a rank, one buffer after the other. REQUIRES: fit().
  uint64_t scratch_bytes(uint32_t rank) const;
  /// Makes memory; `scratch`, if it is there, is where the rank's scratch lies. False: the system
  /// gives none.
  bool place(uint32_t rank, bool in_place, uint8_t* scratch = nullptr);
  /// Makes scratch ready for the first call, see prepare().
  void fill_scratch(uint32_t rank, bool poison);
  /// Counts of channels, semaphores and barriers as before the first call. REQUIRES: place().
  void reset_states();
  /// Reports that memory is missing, and returns false.
  [[nodiscard]] static bool no_memory(Diagnostics& diagnostics);

 private:
  bool place_externals(uint32_t rank, const Chunking& chunking);
  bool place_caller_buffers(uint32_t rank, bool in_place, const Chunking& chunking);
  void forget_memory();

  const Program& program_;
  const std::string name_;
  DeviceProgram device_;
  RowSteps rows_ = RowSteps::together;
  Call call_;
  uint64_t capacity_ = 0;  ///< bytes of a part for which scratch is laid out
  bool fitted_ = false;
  uint64_t next_call_ = 0;
  FiberPool own_fibers_;
  FiberPool* fibers_ = &own_fibers_;
  std::vector<std::vector<SimBuffer>> buffers_;    ///< by rank and buffer
  std::vector<std::vector<uint8_t*>> addresses_;   ///< the same; in place two are one
  std::vector<std::vector<SimBuffer>> externals_;  ///< by rank and external
  std::vector<SimRank> states_;
  std::vector<std::string> early_flags_;
};

}  // namespace mscclc
