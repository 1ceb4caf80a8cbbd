#include "passes/prove/memory/chunk_contents.h"

#include <algorithm>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {

ChunkContents::ChunkContents(const System& system, const Symbols& symbols,
                             const RunOptions& options, const CallOrder& calls,
                             const OpAtHand& at_hand)
    : system_(system),
      symbols_(symbols),
      options_(options),
      calls_(calls),
      at_hand_(at_hand),
      trace_(options.traced ? std::make_unique<ValueTrace>() : nullptr),
      turned_(symbols, system.symmetry(), trace_.get()),
      unwritten_(symbols.unknown(0)),
      mixed_(symbols.unknown(1)),
      raced_(symbols.unknown(~uint64_t{0})),
      values_(system.chunks(), ChunkValue(unwritten_)) {
  if (trace_) begin_trace();
}

/// What has not been written gets a symbol by where it is. (Ranks that stand for others have too
/// many such chunks.)
void ChunkContents::begin_trace() {
  trace_->add_raced(raced_);
  trace_->add_unwritten(unwritten_);
  if (!system_.symmetry().trivial()) return;
  for (uint64_t chunk = 0; chunk < system_.chunks(); ++chunk) {
    values_[chunk] = ChunkValue(turned_.unwritten(chunk));
  }
}

/// In place an input lies in an output, so it comes last.
void ChunkContents::begin_call(uint32_t rank, uint32_t call) {
  const std::vector<Buffer>& buffers = system_.program().ranks[rank].buffers;
  const Part& part = calls_.part(rank, call);
  const uint32_t input = part.input + kInput, output = part.input + kOutput;
  for (uint32_t c = 0; c < buffers[output].chunks; ++c) {
    const uint64_t chunk = system_.chunk(rank, output, c, call);
    if (chunk == kNoChunk) continue;
    const bool uncertain = options_.suspects && options_.suspects->callers.contains(chunk);
    const Symbol unwritten = trace_ ? turned_.unwritten(chunk) : unwritten_;  // distinct in a trace
    values_[chunk].write({}, 1, uncertain ? raced_ : unwritten, mixed_);
  }
  for (uint32_t c = 0; c < buffers[input].chunks; ++c) {
    const uint64_t chunk = system_.chunk(rank, input, c, call);
    if (chunk == kNoChunk) continue;
    Symbol symbol = turned_.contribution(rank, c, calls_.instance(rank, call));
    symbol.size = part.contract().size_class(Side::input, part.local[rank], c) + 1;
    values_[chunk].write({}, 1, symbol, mixed_);
  }
}

/// What these bytes hold, as seen from the rank at hand.
Symbol ChunkContents::symbol_at(const Spot& spot, const Extent& extent) const {
  Symbol symbol = values_[spot.chunk].read(extent, mixed_);
  if (symbol.same_contributions(mixed_)) symbol = mixed_at(spot.chunk);
  return turned_.turned(symbol, spot.turns);
}

Symbol ChunkContents::load(const Event& reader, const Spot& spot, const Extent& extent,
                           const ChunkName& name, bool in_units) {
  Symbol symbol = symbol_at(spot, extent);
  if (trace_) trace_->note_read(symbol, {name, reader, at_hand_.pair});
  if (in_units) {
    if (!premise(Premise::units_of_this_round, symbol.round == at_hand_.round))
      symbol = mixed_with(symbol);
    symbol.round = 0;
  }
  if (options_.suspects == nullptr) return symbol;
  return stale(reader, name, spot.chunk, symbol) ? raced_ : symbol;
}

/// Has a load that is in a race got what is not of this call, or what has not been written there,
/// or not what the caller gave? In the order that is meant it would have got something else.
bool ChunkContents::stale(const Event& event, const ChunkName& name, uint64_t chunk,
                          const Symbol& symbol) {
  const uint32_t rank = system_.processes()[event.process].rank;
  if (!options_.suspects->loads.contains(Suspects::key(rank, event.op))) return false;
  const uint64_t now = calls_.instance(rank, event.call);
  if (name.buffer == kInput) {
    return !symbol.same_contributions(symbols_.contribution(name.rank, name.chunk, now));
  }
  if (symbol.same_contributions(turned_.unwritten(chunk))) return true;
  const ValueTrace::Content content = trace_->content(symbol);
  return content.unknown ||
         std::ranges::any_of(content.inputs, [&](const auto& i) { return i.first.call != now; });
}

/// What a chunk holds whose pieces differ.
Symbol ChunkContents::mixed_at(uint64_t chunk) const {
  if (options_.suspects == nullptr) return mixed_;
  return any_raced(chunk) ? raced_ : mixed_;
}

}  // namespace mscclc::proof
