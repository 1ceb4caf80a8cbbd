// What every chunk holds, and what an op that loads there gets.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "passes/prove/memory/op_at_hand.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/value_trace.h"
#include "passes/prove/model/values.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/run_options.h"

namespace mscclc::proof {

class ChunkContents {
 public:
  /// Nothing has been written. All of them must outlive it.
  ChunkContents(const System& system, const Symbols& symbols, const RunOptions& options,
                const CallOrder& calls, const OpAtHand& at_hand);

  /// What the caller hands over: outputs that hold anything, inputs of this call.
  void begin_call(uint32_t rank, uint32_t call);

  /// What these bytes of a chunk hold, as seen from the rank that has it. mixed(): not one value.
  Symbol read(uint64_t chunk, const Extent& extent) const {
    return values_[chunk].read(extent, mixed_);
  }
  /// What an op loads there, as seen from the op's rank. Of a unit of scratch it is known only in
  /// the round that put it there (lemma R4).
  Symbol load(const Event& reader, const Spot& spot, const Extent& extent, const ChunkName& name,
              bool in_units);
  /// `pieces`: of extent.way.
  void store(uint64_t chunk, const Extent& extent, uint32_t pieces, const Symbol& stored) {
    values_[chunk].write(extent, pieces, stored, mixed_at(chunk));
  }

  /// The first piece that holds other contributions than `wanted`, or with `minus_zero` may have
  /// lost -0.0; else all of the chunk.
  ChunkValue::Piece piece_without(uint64_t chunk, const Symbol& wanted, bool minus_zero) const {
    return values_[chunk].piece_without(wanted, minus_zero).value_or(ChunkValue::Piece{{}, mixed_});
  }
  /// Does some of the chunk hang on a race?
  bool any_raced(uint64_t chunk) const {
    return values_[chunk].any([&](const Symbol& s) { return raced(s); });
  }
  /// Does the value hang on a race that is known?
  bool raced(const Symbol& symbol) const {
    return options_.suspects != nullptr && trace_->raced(symbol);
  }
  /// Of what a race has put there.
  const Symbol& of_race() const { return raced_; }
  /// What becomes of a value of which pieces are taken for the whole.
  Symbol mixed_with(const Symbol& symbol) const { return raced(symbol) ? raced_ : mixed_; }

  TurnedSymbols& symbols() { return turned_; }
  const TurnedSymbols& symbols() const { return turned_; }
  /// What symbols were made of; nullptr: the run is not traced.
  const ValueTrace* trace() const { return trace_.get(); }

 private:
  void begin_trace();
  Symbol symbol_at(const Spot& spot, const Extent& extent) const;
  Symbol mixed_at(uint64_t chunk) const;
  bool stale(const Event& event, const ChunkName& name, uint64_t chunk, const Symbol& symbol);

  const System& system_;
  const Symbols& symbols_;
  const RunOptions& options_;
  const CallOrder& calls_;
  const OpAtHand& at_hand_;
  std::unique_ptr<ValueTrace> trace_;
  TurnedSymbols turned_;
  const Symbol unwritten_, mixed_, raced_;
  std::vector<ChunkValue> values_;
};

}  // namespace mscclc::proof
