// What a step of a block has to do: how long its threads take, what it moves over which link, which
// packets it reads and writes, what it asks the proxy for.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/cost/virtual_time/arrivals.h"
#include "executor/interpreter/frame.h"
#include "executor/lower.h"
#include "plans/format/machines/machine.h"

namespace mscclc::cost {

/// What transfers share at a rank.
enum class Shared : uint8_t {
  egress,
  ingress,
  memory,
  host_out,  ///< to the host's memory, and from there
  host_in,
  nic_out,
  nic_in,
  nic_both,
  engine
};
inline constexpr uint32_t kSharedKinds = 9;
inline uint32_t shared_index(uint32_t rank, Shared kind) {
  return rank * kSharedKinds + static_cast<uint32_t>(kind);
}

/// Bytes over something shared.
struct Load {
  uint32_t shared;  ///< shared_index()
  uint64_t bytes;
};

struct PacketRange {
  uint32_t rank, buffer;
  SlotRange range;
};

/// What a block hands to the proxy.
struct Request {
  uint32_t channel;  ///< of the rank
  uint32_t peer;
  uint64_t bytes = 0;
  bool packets = false;
  bool in_gpus = false;  ///< caller's buffers: what they hold goes to the host and back
  PacketRange slot;      ///< packets: where they come to lie
};

struct Work {
  double block_ns = 0;     ///< of the threads
  double first_ns = 0;     ///< of that until the first bytes are on their way
  double read_ns = 0;      ///< of that a look at packets; what has waited for them has looked
  uint64_t stores = 0;     ///< bytes, at all destinations together
  double busy_ns = 0;      ///< what they take longer while others of the GPU send
  double tail_ns = 0;      ///< what follows the arrival of the last packet
  bool fetches = false;    ///< it reads from other GPUs: their answers come a latency later
  bool from_host = false;  ///< it reads scratch that lies in the host's memory
  bool at_switch = false;
  std::vector<Load> loads;
  std::vector<PacketRange> reads, writes;
  std::vector<Request> requests;

  void clear();
  /// Does the copy, too, while its threads wait for memory anyway.
  void join(const Work& copy);
  void load(uint32_t shared, uint64_t bytes);
};

/// Works out what steps of a rank do. The rank must be fitted.
class WorkOut {
 public:
  WorkOut(const Program& program, const RankProgram& lowered, uint32_t rank, const Machine& machine,
          const Call& call);
  /// Threads of a block of the rank.
  uint64_t threads() const { return threads_; }
  /// Of one step that moves data, in call `call` of the plan, in a round of a pipeline or not.
  void of(const device::Frame& frame, const device::DeviceOp& op, uint64_t call, Work& out) const;

 private:
  struct Sums;
  template <PacketFormat F>
  void add_moves(const device::Frame& frame, const device::DeviceOp& op, uint64_t call, Sums& sums,
                 Work& out) const;
  template <PacketFormat F>
  void add_stretch(const device::Frame& frame, const device::DeviceOp& op,
                   const device::FrameStretch& s, uint64_t call, bool same_source, Sums& sums,
                   Work& out) const;
  bool of_callers(const device::Frame& frame, const device::FrameStretch& s) const;
  bool same_source(const device::Move& a, const device::Move& b) const;
  void add_access(const device::DeviceOperand& operand, bool write, uint64_t bytes, Sums& sums,
                  Work& out) const;
  uint64_t as_stored(const device::DeviceOp& op, uint32_t k, uint64_t bytes) const;
  double source_ns(const device::DeviceOp& op) const;
  /// What a step of plain data waits for its first loads.
  double first_ns() const;
  /// What a function of `data` bytes of rows adds to the step that applies it.
  void add_rows(const device::DeviceOp& op, uint64_t data, Sums& sums, Work& out) const;
  SlotRange slot_range(const device::Frame& frame, const device::FrameStretch& s, uint32_t k,
                       uint64_t wire, uint64_t call) const;

  const Program& program_;
  const RankProgram& lowered_;
  const uint32_t rank_;
  const Machine& machine_;
  const Call& call_;
  const bool has_packets_;  ///< the rank's plan
  const uint64_t threads_;  ///< of a block
};

}  // namespace mscclc::cost
