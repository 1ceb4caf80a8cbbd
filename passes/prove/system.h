// The fixed tables of a proof: who acts (processes), who is counted (channel ends, semaphores), and
// where chunks lie, with input and output in one place or two.
//
// Processes of rank r: its thread blocks, the caller, and two for each end of a port: the proxy as
// reader of sources and as writer at the far end, because a flush waits for the first only.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "passes/prove/finding.h"
#include "passes/prove/joint.h"

namespace mscclc::proof {

enum class ProcessKind : uint8_t { block, caller, port_reader, port_writer };

struct Process {
  ProcessKind kind;
  uint32_t rank;
  uint32_t index;  ///< block, or channel of the rank
};

class System {
 public:
  /// A plan alone. REQUIRES: program.split.
  System(const Program& program, bool in_place);
  /// Several plans. Those that may run in place do so if `in_place`.
  System(const Joint& joint, bool in_place);

  const Program& program() const { return program_; }
  bool in_place() const { return in_place_; }
  const std::vector<Part>& parts() const { return parts_; }
  bool joint() const { return parts_.size() > 1; }
  /// The part that has this op, or this buffer, of a rank.
  const Part& part_of_op(uint32_t rank, uint32_t op) const;
  const Part& part_of_buffer(uint32_t rank, uint32_t buffer) const;
  bool is_callers(uint32_t buffer) const { return buffer < 2 * parts_.size(); }
  /// Do these parts (positions) have their scratch at a rank in one place, laid out differently?
  bool overlaid(uint32_t rank, size_t a, size_t b) const;
  const std::vector<Process>& processes() const { return processes_; }
  uint32_t width() const { return static_cast<uint32_t>(processes_.size()); }
  uint32_t blocks(uint32_t rank) const { return blocks_[rank]; }
  uint32_t block_process(uint32_t rank, uint32_t block) const { return first_[rank] + block; }
  uint32_t caller_process(uint32_t rank) const { return first_[rank] + blocks_[rank]; }
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
  uint64_t chunk(uint32_t rank, uint32_t buffer, uint32_t chunk, uint32_t call) const {
    const Buffer& b = program_.ranks[rank].buffers[buffer];
    const uint64_t copy = b.copies > 1 ? call % b.copies : 0;
    return bases_[first_buffer_[rank] + buffer] + copy * b.chunks + chunk;
  }
  uint64_t chunks() const { return chunks_; }
  /// The least common multiple of all numbers of copies.
  uint32_t period() const { return period_; }

 private:
  void build();
  void share_ends();
  void place_buffers(uint32_t rank);
  void place_callers(uint32_t rank, const Part& part);
  bool shares_chunks(uint32_t rank, const Part& a, const Part& b) const;

  const Program& program_;
  bool in_place_;
  std::vector<Part> parts_;
  std::vector<Process> processes_;
  std::vector<uint32_t> first_, blocks_;
  std::vector<uint32_t> first_end_, first_semaphore_, first_buffer_;
  std::vector<uint32_t> shared_ends_;  ///< several plans: the end that counts for this one
  std::vector<uint32_t> ports_;        ///< by end: its reader, or kNone
  std::vector<uint64_t> bases_;
  uint64_t chunks_ = 0;
  uint32_t period_ = 1;
};

}  // namespace mscclc::proof
