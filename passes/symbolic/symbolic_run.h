// Runs a whole program once, chunk by chunk, with symbols instead of data. One run shows all: who
// meets whom does not depend on the schedule, as each side of a channel, each semaphore and each
// packet slot serves one block or group.
//
// A symbol is a multiset of contributions (rank, input chunk), as the sum of their 64-bit mixes, so
// sums are additions. It is kept per chunk, or per slice of a chunk where groups share ops. Blocks
// run until they must wait: for signals (counted per channel end), semaphores, barriers, packets.
// Ports put at once, pipelines make one round, copies of buffers do not matter within a call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/access.h"
#include "ir/program/program.h"
#include "passes/symbolic/chunk_slices.h"

namespace mscclc::symbolic {

using Symbol = uint64_t;

/// The symbol of an input chunk.
inline Symbol contribution(uint32_t rank, uint32_t chunk) {
  uint64_t x = (uint64_t{rank} << 32 | chunk) + 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

class SymbolicRun {
 public:
  /// REQUIRES: program.split. With `symbols` false only the waiting is simulated.
  SymbolicRun(const Program& program, bool symbols);
  /// So many chunks of all buffers, or slices of chunks where group ops cut them, can be looked at.
  static constexpr uint64_t kMaxCells = uint64_t{1} << 29;
  /// False if the program has too many chunks to be run.
  bool fits() const { return fits_; }

  /// Runs the program. `reduced(rank, op, symbols)` is called for every op that adds up, with its
  /// result. Returns false if thread blocks wait forever.
  template <class Reduced>
  bool run(Reduced&& reduced);
  /// Reports which blocks wait forever, and for which.
  void report_stuck(Diagnostics& diagnostics) const;

 private:
  static constexpr uint64_t kNoCells = ~uint64_t{0};
  enum class Wait : uint8_t { none, signal, semaphore, barrier, packets };
  enum Slot : uint8_t { kEmpty, kFull, kAwaited };

  struct Process {
    uint32_t rank, op, end;
    uint32_t operand = 0;   ///< how many operands of the op have been waited for
    uint32_t next = kNone;  ///< the next process that waits for the same thing
    uint64_t cell = 0;      ///< Wait::packets: the slot
    Wait wait = Wait::none;
  };
  /// A channel end or a semaphore.
  struct Counter {
    uint32_t value = 0;
    uint32_t waiting = kNone;  ///< a process
  };
  struct Barrier {
    std::vector<uint32_t> blocks;   ///< sorted
    uint32_t operands;              ///< of the op that was seen first
    std::vector<uint32_t> arrived;  ///< processes
  };
  /// Where a buffer's symbols and packet slots lie.
  struct BufferCells {
    uint64_t symbols = kNoCells, slots = kNoCells;
    bool sentinel = false;
  };

  void lay_out();
  void fill_inputs();
  void add_processes();
  BufferCells& place(uint32_t rank, uint32_t buffer) {
    return places_[first_buffer_[rank] + buffer];
  }
  const BufferCells& place(uint32_t rank, uint32_t buffer) const {
    return places_[first_buffer_[rank] + buffer];
  }

  /// True if the op has been done; false if its process waits now.
  bool do_control(uint32_t process, const Op& op, const OpInfo& row);
  bool take(uint32_t process, std::span<const Operand> operands, std::vector<Counter>& counters,
            const std::vector<uint32_t>& first, Wait wait);
  void give(Counter& counter);
  void signal(uint32_t rank, std::span<const Operand> operands);
  Barrier& barrier_of(uint32_t rank, const Op& op);
  bool arrive(uint32_t process, const Op& op);
  bool has_packets(uint32_t process, const Op& op);
  void move(uint32_t rank, const Op& op, const OpInfo& row);
  void apply_to_value();
  void load(uint32_t rank, const OpInfo& row, const Operand& o, bool add);
  void load_from(const BufferCells& from, uint64_t begin, bool add, bool polls);
  void store(uint32_t rank, const Operand& o);
  void store_to(const BufferCells& to, uint64_t begin);
  void wake(uint32_t process);
  template <class Each>
  void each_member(uint32_t rank, const Operand& o, Each&& each) const;

  // symbolic_report.cc: an op that has still to be done, by whom
  struct Pending {
    uint32_t rank = kNone;
    const Op* op = nullptr;
  };
  const Op& waiting_op(const Process& process) const {
    return program_.ranks[process.rank].ops[process.op];
  }
  Pending find_server(const Process& process) const;
  Pending find_reader(const Process& process) const;
  bool empties(uint32_t rank, const Op& op, uint64_t slot) const;
  Pending find_absent(const Process& process) const;
  bool serves(uint32_t rank, const Op& op, const Process& waiting) const;
  bool fills(uint32_t rank, const Op& op, uint64_t slot) const;
  std::string explain(const Process& process, const Pending& server) const;
  MissingEdge missing_edge(const Process& waiting, const Pending& server) const;

  const Program& program_;
  const bool symbolic_;
  bool fits_ = true;
  ChunkSlices slices_;
  uint32_t per_chunk_;
  std::vector<uint32_t> first_channel_, first_semaphore_, first_buffer_, first_process_;
  std::vector<BufferCells> places_;
  std::vector<Symbol> symbols_;
  std::vector<Slot> slots_;
  std::vector<Counter> ends_, semaphores_;
  std::vector<std::vector<Barrier>> barriers_;  ///< by rank
  std::vector<Process> processes_;
  std::unordered_map<uint64_t, uint32_t> awaited_;  ///< slot -> a process that waits for it
  std::vector<uint32_t> ready_, woken_;
  ChunkSlices::Range range_{0, 0};  ///< of the op at hand
  std::vector<Symbol> value_;       ///< what the op at hand moves
};

/// The one place of an operand, or those at all members of a switch.
template <class Each>
void SymbolicRun::each_member(uint32_t rank, const Operand& o, Each&& each) const {
  if (o.channel == kNone) return each(place(rank, o.buffer));
  const Rank& here = program_.ranks[rank];
  const Channel& channel = here.channels[o.channel];
  if (channel.kind != ChannelKind::switch_) return each(place(channel.peer, o.buffer));
  for (const int64_t q : program_.values(channel.group)) {
    const uint32_t member = static_cast<uint32_t>(q);
    each(place(member, member_buffer(program_, member, here.buffers[o.buffer], o.buffer)));
  }
}

template <class Reduced>
bool SymbolicRun::run(Reduced&& reduced) {
  for (uint32_t p = 0; p < processes_.size(); ++p) woken_.push_back(p);
  while (!woken_.empty()) {
    ready_.clear();
    ready_.swap(woken_);
    for (const uint32_t p : ready_) {
      Process& process = processes_[p];
      const std::vector<Op>& ops = program_.ranks[process.rank].ops;
      for (; process.op < process.end; ++process.op) {
        const Op& op = ops[process.op];
        const OpInfo& row = info(op.kind);
        if (!row.moves_data()) {
          if (!do_control(p, op, row)) break;
          continue;
        }
        if (row.has(kPolls) && !has_packets(p, op)) break;
        move(process.rank, op, row);
        if (symbolic_ && row.has(kReduces)) {
          reduced(process.rank, process.op, std::span<const Symbol>(value_));
        }
        if (row.has(kSignals)) signal(process.rank, program_.dsts(op));
      }
    }
  }
  for (const Process& process : processes_) {
    if (process.op < process.end) return false;
  }
  return true;
}

}  // namespace mscclc::symbolic
