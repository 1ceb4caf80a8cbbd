// Ops that order: signals, semaphores, barriers.
#include <algorithm>

#include "ir/program/flag_regions.h"
#include "plans/format/write/op_writer.h"

namespace mscclc {

void OpWriter::write_control(const Op& op) {
  OpFacts facts;
  ids_.clear();
  const OpInfo& row = info(op.kind);
  facts.signals_early = note_port_threads(op);
  if (row.has(kMeets)) return write_barrier(op);
  if (row.has_flags()) return write_flag_op(op);
  const bool semaphores = row.has(kReleases) || row.has(kAcquires);
  for (const Operand& o : program_.dsts(op)) {
    if (semaphores) {
      ids_.push_back(o.first);
      continue;
    }
    facts.channel = channel(o.channel).kind;  // of all: verify_structure checks it
    ids_.push_back(use_channel(o.channel));
    facts.channel_position = std::max(facts.channel_position, ids_.back());
  }
  facts.ids = static_cast<uint32_t>(ids_.size());
  begin_op(op, facts);
  if (semaphores) {
    json_.members("semaphore_ids", [&] { json_.list(ids_); });
  } else if (!ids_.empty()) {
    write_channels(facts.channel);
  }
}

/// Its flags, as numbers over all arrays.
void OpWriter::write_flag_op(const Op& op) {
  begin_op(op, {});
  for (const Operand& o : program_.dsts(op)) {
    ids_.push_back(flag_number(program_, o.buffer, o.first));
  }
  json_.members("flags", [&] { json_.list(ids_); });
}

void OpWriter::write_barrier(const Op& op) {
  OpFacts facts;
  facts.barrier = barrier_id(op);
  begin_op(op, facts);
  json_.members("barrier_id", facts.barrier, "num_threadblocks", op.dsts);
}

/// One id per set of blocks; in the order of first use.
uint32_t OpWriter::barrier_id(const Op& op) {
  blocks_.clear();
  for (const Operand& o : program_.dsts(op)) blocks_.push_back(o.first);
  const bool disordered = !std::ranges::is_sorted(blocks_);
  if (disordered) std::ranges::sort(blocks_);
  const auto found = std::ranges::find(meetings_, blocks_, &Meeting::blocks);
  const uint32_t id = static_cast<uint32_t>(found - meetings_.begin());
  if (found == meetings_.end()) {
    meetings_.push_back({blocks_, {}, {}, {}});
    limits_.check_barriers(rank_, op, meetings_.size());
  }
  Meeting& meeting = meetings_[id];
  meeting.ops.push_back(index_);
  if (disordered) meeting.disordered.push_back(index_);
  if (meeting.present.empty() || meeting.present.back() != op.block) {
    meeting.present.push_back(op.block);
  }
  return id;
}

/// A reader takes the blocks that list a barrier, in ascending order, for those that meet. Notes
/// the ops of which that is not true.
void OpWriter::note_barriers() {
  for (const Meeting& meeting : meetings_) {
    const bool wrong = meeting.present != meeting.blocks;
    for (const uint32_t index : wrong ? meeting.ops : meeting.disordered) {
      RankNotes::Row row = {index};
      for (const Operand& o : program_.dsts(program_.ranks[rank_].ops[index])) {
        row.push_back(o.first);
      }
      notes_.barriers.push_back(std::move(row));
    }
  }
}

}  // namespace mscclc
