// Runs chains against each other, two calls of them, and finds out whether any two ranks that touch
// the same bytes are ordered. Chains that share no channel and no chunk are run apart: what they
// do then holds for the whole.
//
// What counts as order: the order inside a chain; a signal and the wait that takes it (the k-th
// with the k-th); an op and a conflicting one above it in another chain of its rank, which `sync`
// will order; the end of a call on a rank and its next call. A relaxed signal or wait only says
// that a rank is in its call, so has ended the one before. An access to a caller's buffer of
// another rank needs to know as much before; and that it is done must be known to that rank at the
// end of its call. Packets order nothing here but the run itself. A pipeline makes one round (see
// rounds_pair_up()).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "passes/assign/chain_cells.h"
#include "passes/assign/chain_sets.h"
#include "passes/assign/chains.h"
#include "passes/framework/clock_rows.h"

namespace mscclc::assign {

class ChainRun {
 public:
  ChainRun(const Program& program, const ChainCells& cells, const Chains& chains);
  /// True if everything is ordered; then `level` is filled as in Chains.
  bool run(std::vector<std::vector<uint32_t>>& level);

 private:
  /// A chain of a rank.
  struct Chain {
    uint32_t rank = 0, member = 0;  ///< member: its place in the class at hand
    std::vector<uint32_t> ops;
    uint32_t next = 0, operand = 0, calls = 0;
    uint32_t level = 0;
  };
  /// What a signal brings, or an op that others of its rank wait for: rows of knowledge. A relaxed
  /// one brings what the rank knew when its call began.
  struct Word {
    uint32_t row = 0, begin_row = 0;
    bool relaxed = false;
    uint32_t level = 0;
  };
  struct End {
    std::vector<Word> words;  ///< signals sent to it
    uint32_t taken = 0;
  };
  struct Record {
    uint32_t chain, time, next;
    bool write;
  };
  /// An access of another rank to a caller's buffer, to be known when the call ends there.
  struct Guest {
    uint32_t chain, time, call;
  };

  void make_chains();
  void find_waits_of_sync();
  void unite_by_cells(ChainSets& parts);
  void unite_by_channels(ChainSets& parts) const;
  std::vector<std::vector<uint32_t>> find_classes();
  bool run_class(const std::vector<uint32_t>& members);
  void start_class(const std::vector<uint32_t>& members);
  bool step(uint32_t chain);
  bool ready(Chain& chain, uint32_t op);
  bool take(Chain& chain, const Op& op);
  bool access(uint32_t chain, uint32_t op);
  bool access_cell(uint32_t chain, uint32_t cell, bool write);
  bool visit(uint32_t chain, uint32_t cell);
  void note_done(Chain& chain, uint32_t op);
  void publish(Chain& chain, const Op& op);
  bool end_call(uint32_t place);

  uint32_t chain_of(uint32_t rank, uint32_t op) const {
    return first_chain_[rank] + chains_.chain[rank][op];
  }
  uint32_t global(uint32_t rank, uint32_t op) const { return cells_.first_op(rank) + op; }

  const Program& program_;
  const ChainCells& cells_;
  const Chains& chains_;
  std::vector<uint32_t> first_chain_;  ///< by rank
  std::vector<Chain> all_;
  std::vector<std::vector<End>> ends_;  ///< by rank and channel
  /// By op: ops of other chains of its rank that `sync` puts it after; and which need its word.
  std::vector<std::vector<uint32_t>> after_;
  std::vector<bool> needed_;
  bool ordered_ = true;               ///< so far
  std::vector<Word> said_;            ///< by op, of this call
  std::vector<uint32_t> done_calls_;  ///< by op
  std::vector<uint32_t> filled_;      ///< by cell: calls in which its packets have been written
  std::vector<uint32_t> levels_;      ///< by op
  std::vector<uint32_t> cell_level_;  ///< by cell: level of the packets' writer
  // Of the class at hand. A row: what is known of the members, then the calls that their ranks
  // are known to be in.
  std::vector<uint32_t> class_ranks_, rank_place_;
  std::vector<std::vector<uint32_t>> of_rank_;  ///< by place of a rank: members
  std::vector<uint32_t> ended_;                 ///< by place of a rank: calls ended
  std::vector<uint32_t> begin_rows_;            ///< by place of a rank: at the begin of its call
  std::vector<std::vector<Guest>> guests_;      ///< by place of a rank
  ClockRows rows_;
  uint32_t members_ = 0;
  std::vector<bool> written_;   ///< by cell: by a plain op of any rank
  std::vector<uint32_t> head_;  ///< by cell: newest record
  std::vector<Record> records_;
};

}  // namespace mscclc::assign
