// All ranks of a plan on this machine: their memory, and calls that run on it.
//
// A rank begins its next call when its blocks have ended the last one, whatever the other ranks
// do: a rank may be one call or several ahead. Packet flags go on counting from run to run.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "executor/host/adversary.h"
#include "executor/host/fiber.h"
#include "executor/host/machine.h"
#include "executor/host/memory.h"
#include "executor/lower.h"

namespace mscclc {

/// What the caller of a collective does at every rank around every call.
class CallHooks {
 public:
  virtual ~CallHooks() = default;
  virtual void before(uint32_t rank, uint64_t call) = 0;
  virtual void after(uint32_t rank, uint64_t call) = 0;
};

/// A thread block of a run, or one of its lanes.
struct BlockTask {
  uint32_t rank, block;
  const HostMachine* machine;
  uint64_t calls_done = 0;
  bool ended = false;
};

class Cluster {
 public:
  /// The program must outlive the cluster.
  explicit Cluster(const Program& program) : program_(program) {}

  /// Lowers the program. Once, before all else.
  bool build(Diagnostics& diagnostics);
  /// Makes memory and device program fit a call. `poison`: fills plain scratch with a pattern.
  bool prepare(const Call& call, bool in_place, bool poison, Diagnostics& diagnostics);

  /// Runs `calls` calls on all ranks. False: it hangs (reported), or the system has no memory.
  /// Warns of ports that still read a caller's buffer when the call returns. With an adversary
  /// blocks are run by lanes, accesses are late at random (seed 0: only those that it holds).
  bool run(uint64_t calls, uint64_t seed, CallHooks& hooks, Diagnostics& diagnostics,
           const Adversary* adversary = nullptr);
  /// Reports bytes written beside a buffer.
  bool check_guards(Diagnostics& diagnostics) const;

  const Program& program() const { return program_; }
  const DeviceProgram& device() const { return device_; }
  const Call& call() const { return call_; }
  const std::vector<HostRank>& states() const { return states_; }
  uint8_t* data(uint32_t rank, uint32_t buffer) const { return addresses_[rank][buffer]; }
  uint64_t bytes(uint32_t rank, uint32_t buffer) const {
    return device_.ranks[rank].buffers[buffer].bytes;
  }
  /// The number of the next call, which packet flags and copies go by.
  uint64_t next_call() const { return next_call_; }
  void set_next_call(uint64_t number) { next_call_ = number; }
  /// As if nothing had been run yet: what is prepared next gets new memory, and call 0.
  void restart() {
    forget_memory();
    next_call_ = 0;
  }

 private:
  struct Caller;
  struct Running;
  bool place(uint32_t rank, bool in_place, const Chunking& chunking);
  bool place_caller_buffers(uint32_t rank, bool in_place, const Chunking& chunking);
  void fill_scratch(uint32_t rank, bool poison);
  void reset_states();
  void forget_memory();
  bool is_callers(uint32_t rank, const uint8_t* address) const;
  bool no_memory(Diagnostics& diagnostics) const;

  const Program& program_;
  DeviceProgram device_;
  Call call_;
  bool patched_ = false;
  uint64_t next_call_ = 0;
  FiberPool fibers_;
  std::vector<std::vector<HostBuffer>> buffers_;  ///< by rank and buffer
  std::vector<std::vector<uint8_t*>> addresses_;  ///< the same; in place two are one
  std::vector<HostRank> states_;
};

/// Adds to `diagnostics` who waits for whom. Blocks that have ended are not waiting.
void report_hang(const Cluster& cluster, const std::deque<BlockTask>& blocks,
                 Diagnostics& diagnostics);

}  // namespace mscclc
