#include "passes/prove/values.h"

#include <functional>
#include <random>

#include "passes/prove/value_trace.h"

namespace mscclc::proof {

Symbols::Symbols() {
  std::random_device random;
  for (uint64_t& key : keys_) key = uint64_t{random()} << 32 | random();
}

uint64_t Symbols::mix(uint64_t a, uint64_t b) const {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

Symbol Symbols::contribution(uint32_t rank, uint32_t chunk, uint64_t call) const {
  const uint64_t place = uint64_t{rank} << 32 | chunk;
  const uint64_t low = mix(mix(keys_[0], place), call ^ keys_[1]);
  const uint64_t high = mix(mix(keys_[2], place), call ^ keys_[3]);
  return {low, high, mix(low, high), 0};
}

Symbol Symbols::unknown(uint64_t which) const {
  const uint64_t low = mix(keys_[1], which ^ keys_[2]), high = mix(keys_[3], which ^ keys_[0]);
  return {low, high, mix(low, high), 0};
}

Symbol Symbols::add(const Symbol& a, const Symbol& b) const {
  const uint64_t low = a.low + b.low;
  return {low, a.high + b.high + (low < a.low ? 1 : 0), mix(a.order, b.order), a.size};
}

Symbol Symbols::rounded(const Symbol& sum, bool divided) const {
  Symbol result = sum;
  result.order = mix(sum.order, keys_[0]);
  if (divided) {
    result.low = mix(sum.low, keys_[1]);
    result.high = mix(sum.high, keys_[2]);
  }
  return result;
}

template <class Make>
Symbol TurnedSymbols::with_images(Symbol symbol, Make&& make) {
  if (symmetry_.trivial()) return symbol;
  Symbol key = symbol;
  key.size = 0;
  const auto [entry, added] = ids_.try_emplace(key, static_cast<uint32_t>(images_.size()));
  symbol.id = entry->second;
  symbol.turn = 0;
  if (!added) return symbol;
  std::vector<Numbers>& images = images_.emplace_back();
  images.reserve(symmetry_.turns());
  for (uint32_t k = 0; k < symmetry_.turns(); ++k) {
    const Symbol image = k == 0 ? symbol : make(k);
    images.push_back({image.low, image.high, image.order});
  }
  return symbol;
}

Symbol TurnedSymbols::make_contribution(uint32_t rank, uint32_t chunk, uint64_t call) const {
  const Symbol symbol = symbols_.contribution(rank, chunk, call);
  if (trace_ != nullptr) trace_->add_input(symbol, {rank, chunk, call});
  return symbol;
}

Symbol TurnedSymbols::make_sum(const Symbol& a, const Symbol& b) const {
  const Symbol sum = symbols_.add(a, b);
  if (trace_ != nullptr) trace_->add_sum(sum, a, b);
  return sum;
}

Symbol TurnedSymbols::make_rounded(const Symbol& sum, bool divided) const {
  const Symbol result = symbols_.rounded(sum, divided);
  if (trace_ != nullptr && divided) trace_->add_divided(result, sum);
  return result;
}

Symbol TurnedSymbols::make_unwritten(uint64_t which) const {
  const Symbol symbol = symbols_.unknown(2 + which);
  if (trace_ != nullptr) trace_->add_unwritten(symbol);
  return symbol;
}

Symbol TurnedSymbols::contribution(uint32_t rank, uint32_t chunk, uint64_t call) {
  return with_images(make_contribution(rank, chunk, call), [&](uint32_t k) {
    return make_contribution(rank + k * symmetry_.step(), symmetry_.chunk(kInput, chunk, k), call);
  });
}

Symbol TurnedSymbols::add(const Symbol& a, const Symbol& b) {
  Symbol x = a, y = b;
  x.size = y.size = 0;
  return with_images(make_sum(a, b),
                     [&](uint32_t k) { return make_sum(turned(x, k), turned(y, k)); });
}

Symbol TurnedSymbols::rounded(const Symbol& sum, bool divided) {
  Symbol x = sum;
  x.size = 0;
  return with_images(make_rounded(sum, divided),
                     [&](uint32_t k) { return make_rounded(turned(x, k), divided); });
}

Symbol TurnedSymbols::unwritten(uint64_t chunk) {
  const uint64_t turns = symmetry_.turns();
  return with_images(make_unwritten(chunk * turns),
                     [&](uint32_t k) { return make_unwritten(chunk * turns + k); });
}

Symbol TurnedSymbols::turned(const Symbol& symbol, uint32_t turns) const {
  if (turns == 0 || symmetry_.trivial()) return symbol;
  Symbol result = symbol;
  if (symbol.size != 0) result.size = symmetry_.size_class(symbol.size - 1, turns) + 1;
  if (symbol.id == kNone) return result;
  result.turn = (symbol.turn + turns) % symmetry_.turns();
  const Numbers& image = images_[symbol.id][result.turn];
  result.low = image.low;
  result.high = image.high;
  result.order = image.order;
  return result;
}

Symbol ChunkValue::read(const Extent& extent, const Symbol& mixed) const {
  if (way_ == 0) return whole_;
  if (extent.way == way_) return pieces_[extent.piece];
  return read_across(mixed);
}

/// What all pieces together hold. The orders of their sums may differ. Where one ends and the next
/// begins is known of this chunk only, so that no other chunk may be taken to hold the same bits.
Symbol ChunkValue::read_across(const Symbol& mixed) const {
  Symbol sum = pieces_[0];
  bool one_order = true;
  uint64_t order = std::hash<const void*>()(this);
  for (const Symbol& piece : pieces_) {
    Symbol other = piece;
    other.order = sum.order;
    if (!(other == sum)) return mixed;
    one_order &= piece.order == sum.order;
    order = order * 0x9e3779b97f4a7c15u ^ piece.order;
  }
  if (one_order) return sum;
  if (sum.id != kNone) return mixed;  // its images would have the order of the first piece
  sum.order = order;
  return sum;
}

std::optional<ChunkValue::Piece> ChunkValue::piece_without(const Symbol& wanted) const {
  if (way_ == 0) {
    if (whole_.same_contributions(wanted)) return std::nullopt;
    return Piece{{}, whole_};
  }
  for (uint32_t i = 0; i < pieces_.size(); ++i) {
    if (!pieces_[i].same_contributions(wanted)) return Piece{{way_, i}, pieces_[i]};
  }
  return std::nullopt;
}

void ChunkValue::write(const Extent& extent, uint32_t pieces, const Symbol& symbol,
                       const Symbol& mixed) {
  if (extent.whole()) {
    way_ = 0;
    whole_ = symbol;
    pieces_.clear();
    return;
  }
  if (way_ != extent.way) {
    const Symbol before = read({}, mixed);
    way_ = extent.way;
    pieces_.assign(pieces, before);
  }
  pieces_[extent.piece] = symbol;
}

}  // namespace mscclc::proof
