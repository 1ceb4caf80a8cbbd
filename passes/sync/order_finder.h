// Finds what must be added to a rank's list so that its ops take effect in written order where they
// touch the same bytes: semaphores and barriers between blocks, made here; syncs inside blocks,
// only noted, as `sync` puts them where they serve several needs at once.
//
// A block that must follow another acquires a semaphore before its op that the other releases
// after its own. Does one of the ops stand in a pipeline that the other is not in, this happens
// after, or in front of, the whole pipeline. Blocks of a group that touch each other's parts have
// a barrier. What the author's semaphores and barriers order already is left alone. Under
// `auto_sync: false` nothing is made: what is missing is reported.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "passes/framework/inserts.h"
#include "passes/framework/rank_work.h"
#include "passes/order/block_run.h"
#include "passes/order/conflicts.h"
#include "passes/order/order_edges.h"
#include "passes/sync/block_syncs.h"

namespace mscclc::order {

/// What one rank needs.
struct RankOrder {
  Inserts inserts;                        ///< releases, acquires, barriers
  uint32_t semaphores = 0, barriers = 0;  ///< how many of these
  uint32_t missing = 0;                   ///< under auto_sync: false: orders that are not there
  BlockNeeds inside;
};

class OrderFinder {
 public:
  OrderFinder(Program& program, RankWork& work)
      : program_(program),
        additions_(work.additions),
        diagnostics_(work.context.diagnostics),
        limits_(work.context.limits),
        reports_(!program.launch.auto_sync),
        conflicts_(program) {}
  /// Fills `out` for `rank` and gives it the new semaphores, which name_orders() is to name. False
  /// after reporting an error.
  bool find(uint32_t rank, RankOrder& out);
  /// The ops of that rank by block, as the list was.
  const BlockSequence& sequence() const { return run_.sequence(); }

 private:
  /// The op at hand must follow what another block has done up to an op of its own.
  struct Need {
    uint32_t from, conflict;    ///< the other block, and its latest conflicting op
    uint32_t release, acquire;  ///< ops after and before which to synchronise
    uint32_t loop;              ///< the pipeline that both stand in, or kNone
  };

  bool visit(uint32_t op);
  void find_needs(uint32_t op, std::span<const Conflict> conflicts);
  void add_conflict(uint32_t op, const Conflict& conflict);
  void drop_implied_needs();
  bool is_ordered(uint32_t op, const Conflict& conflict);
  bool meet_group(uint32_t op);
  bool can_meet(const std::vector<uint32_t>& ops);
  void meet(std::vector<uint32_t> ops, bool whole_loop);
  bool add_edge(uint32_t op, const Need& need);
  void report(uint32_t first, uint32_t second, std::string_view why);
  void assign_semaphores();

  void emit(RankOrder& out);
  void emit_side(RankOrder& out, bool releases);
  void emit_barrier(RankOrder& out, const std::vector<uint32_t>& ops, Inserts::Slot slot);
  void emit_rounds(RankOrder& out);
  bool begins_with_barrier(const std::vector<uint32_t>& heads) const;
  uint32_t loop_begin(uint32_t op) const;
  uint32_t loop_end(uint32_t op) const;

  Program& program_;
  Additions& additions_;
  Diagnostics& diagnostics_;
  const OpLimits& limits_;
  const bool reports_;  ///< instead of adding
  Conflicts conflicts_;
  BlockRun run_;

  uint32_t rank_ = 0;
  Rank* here_ = nullptr;
  bool contradiction_ = false;
  uint32_t full_at_ = kNone;  ///< the op at which the clocks were full
  RankOrder* out_ = nullptr;
  std::vector<Need> needs_;  ///< of the op at hand
  OrderEdges edges_;
  std::vector<uint32_t> semaphores_;  ///< by edge
  std::vector<Meeting> meetings_;
  /// Pipelines whose rounds conflict with each other: pipeline, first op of a block's body.
  std::vector<std::pair<uint32_t, uint32_t>> rounds_;
};

/// Names the semaphores that OrderFinder has made.
void name_orders(Program& program);

}  // namespace mscclc::order
