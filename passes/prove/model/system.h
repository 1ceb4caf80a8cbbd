// The fixed tables of a proof: who acts (processes), who is counted (channel ends, semaphores), and
// where chunks lie, with input and output in one place or two.
//
// Processes of rank r: its thread blocks, the caller, one for each flag of an external array (what
// the other side does with its region), and two for each end of a port: the proxy as
// reader of sources and as writer at the far end, because a flush waits for the first only. Ports
// come last: clocks have no column for them (arrivals.h).
//
// Where ranks stand for others (symmetry.h), memory and counters are those of these ranks only.
// What another rank's chunk holds and who has touched it is recorded of the chunk that stands for
// it, as seen from there: a Spot says where, and how far it must be turned. The processes of the
// ranks of one turn then fill whole pages of the clocks, so that a turned clock has the same pages
// in another order.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/precondition.h"
#include "passes/prove/model/chunk_numbers.h"
#include "passes/prove/model/clocks.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/joint.h"
#include "passes/prove/model/symmetry.h"

namespace mscclc::proof {

enum class ProcessKind : uint8_t {
  block,
  caller,
  flag,  ///< the other side of a flag
  port_reader,
  port_writer,
  none  ///< no process: fills the last page of a turn
};

struct Process {
  ProcessKind kind;
  uint32_t rank;
  uint32_t index;  ///< block, or channel of the rank; flag, by its number over all arrays
};

/// Where the state of a chunk is kept, and by how many turns the rank that owns it is further on
/// than the one that stands for it.
struct Spot {
  uint64_t chunk;
  uint32_t turns = 0;
};

class System {
 public:
  /// A plan alone. `symmetry` must outlive it. REQUIRES: program.split.
  System(const Program& program, const Symmetry& symmetry, bool in_place);
  /// Several plans. Those that may run in place do so if `in_place`. `symmetry` is none.
  System(const Joint& joint, const Symmetry& symmetry, bool in_place);

  const Program& program() const { return program_; }
  const Symmetry& symmetry() const { return symmetry_; }
  /// Ranks that are run: all, or those that stand for all.
  uint32_t ranks() const { return symmetry_.step(); }
  uint32_t turns_of(uint32_t rank) const { return rank / symmetry_.step(); }
  /// What a rank becomes when ranks turn.
  uint32_t turned_rank(uint32_t rank, uint32_t turns) const {
    if (turns == 0) return rank;
    return static_cast<uint32_t>((rank + uint64_t{turns} * ranks()) % program_.ranks.size());
  }
  /// The process that `process` becomes when ranks turn.
  uint32_t turned(uint32_t process, uint32_t turns) const {
    if (turns == 0) return process;
    if (process < width_) {
      return static_cast<uint32_t>((process + uint64_t{turns} * turn_) % width_);
    }
    const uint32_t of_ports = static_cast<uint32_t>(processes_.size()) - width_;
    return width_ +
           static_cast<uint32_t>((process - width_ + uint64_t{turns} * port_turn_) % of_ports);
  }
  /// So many turns back.
  uint32_t back(uint32_t turns) const { return turns == 0 ? 0 : symmetry_.turns() - turns; }
  /// What the news become: all of them are of turned processes.
  News turned(const News& news, uint32_t turns) const;
  bool in_place() const { return in_place_; }
  const std::vector<Part>& parts() const { return parts_; }
  bool joint() const { return parts_.size() > 1; }
  /// The part that has this op, or this buffer, of a rank.
  const Part& part_of_op(uint32_t rank, uint32_t op) const;
  const Part& part_of_buffer(uint32_t rank, uint32_t buffer) const;
  bool is_callers(uint32_t buffer) const { return buffer < 2 * parts_.size(); }
  /// Do these parts (positions) have their scratch at a rank in one place, laid out differently?
  bool overlaid(uint32_t rank, size_t a, size_t b) const {
    return overlaid_[(rank * parts_.size() + a) * parts_.size() + b];
  }
  const std::vector<Process>& processes() const { return processes_; }
  /// Columns of a clock: all processes but those of ports.
  uint32_t width() const { return width_; }
  const ClockLayout& clock() const { return clock_; }
  /// Ends of ports: processes width() + 2 i read, width() + 2 i + 1 write.
  uint32_t ports() const { return (static_cast<uint32_t>(processes_.size()) - width_) / 2; }
  uint32_t blocks(uint32_t rank) const { return blocks_[rank]; }
  uint32_t block_process(uint32_t rank, uint32_t block) const {
    return numbers_[first_[rank] + block];
  }
  /// Those of the flags of a rank follow it.
  uint32_t caller_process(uint32_t rank) const { return numbers_[first_[rank] + blocks_[rank]]; }
  uint32_t port_reader(uint32_t rank, uint32_t channel) const { return ports_[end(rank, channel)]; }
  uint32_t port_writer(uint32_t rank, uint32_t channel) const {
    return ports_[end(rank, channel)] + 1;
  }
  /// Numbers of channel ends, of semaphores, of ops: unique over all ranks.
  uint32_t end(uint32_t rank, uint32_t channel) const {
    const uint32_t end = first_end_[rank] + channel;
    return shared_ends_.empty() ? end : shared_ends_[end];
  }
  uint32_t ends() const { return first_end_.back(); }
  uint32_t semaphore(uint32_t rank, uint32_t s) const { return first_semaphore_[rank] + s; }
  uint32_t semaphores() const { return first_semaphore_.back(); }

  /// Number of a chunk in call `call`; chunks that coincide in place have one number.
  /// REQUIRES: rank < ranks().
  uint64_t chunk(uint32_t rank, uint32_t buffer, uint32_t chunk, uint32_t call) const {
    precondition(rank < ranks());
    return chunks_.number(rank, buffer, chunk, call);
  }
  /// The same for any rank.
  Spot spot(uint32_t rank, uint32_t buffer, uint32_t chunk, uint32_t call) const {
    if (rank < ranks()) return {this->chunk(rank, buffer, chunk, call)};
    const uint32_t turns = turns_of(rank);
    return {this->chunk(rank % ranks(), buffer, symmetry_.chunk(buffer, chunk, back(turns)), call),
            turns};
  }
  uint64_t chunks() const { return chunks_.count(); }
  /// Leaves chunks that no op touches without a number (kNoChunk). REQUIRES: no chunk() or spot()
  /// has been asked for yet; one part; no switches.
  void number_touched_chunks();
  /// The least common multiple of all numbers of copies.
  uint32_t period() const { return chunks_.period(); }

 private:
  void build();
  void number_by_rank();
  void number_by_block();
  void add_block(uint32_t rank, uint32_t block);
  void add_caller(uint32_t rank);
  void fill_page(uint32_t rank);
  void add_ports();

  const Program& program_;
  const Symmetry& symmetry_;
  bool in_place_;
  std::vector<Part> parts_;
  ChunkNumbers chunks_;
  uint32_t width_ = 0;  ///< processes of all ranks, but those of ports
  ClockLayout clock_;
  uint32_t turn_ = 0, port_turn_ = 0;  ///< processes that one turn passes: these; those of ports
  std::vector<Process> processes_;
  std::vector<uint32_t> first_, blocks_;  ///< by rank: in numbers_, how many
  std::vector<uint32_t> numbers_;         ///< of a rank's blocks, and of its caller
  std::vector<uint32_t> first_end_, first_semaphore_;
  std::vector<uint32_t> shared_ends_;  ///< several plans: the end that counts for this one
  std::vector<bool> overlaid_;         ///< several plans: by rank, part and part
  std::vector<uint32_t> ports_;        ///< by end: its reader, or kNone
};

}  // namespace mscclc::proof
