#include "passes/prove/model/values.h"

#include <random>

#include "ir/ops/summations.h"
#include "ir/support/precondition.h"
#include "passes/prove/model/premise.h"
#include "passes/prove/model/value_trace.h"

namespace mscclc::proof {

Symbols::Symbols() {
  std::random_device random;
  for (uint64_t& key : keys_) key = uint64_t{random()} << 32 | random();
}

Symbol Symbols::unknown(uint64_t which) const {
  const uint64_t low = mix(keys_[1], which ^ keys_[2]), high = mix(keys_[3], which ^ keys_[0]);
  return {.low = low, .high = high, .terms = ~uint64_t{0}, .order = mix(low, high), .shape = high};
}

Symbol Symbols::add(const Symbol& a, const Symbol& b) const {
  Symbol sum;
  sum.low = a.low + b.low;
  sum.high = a.high + b.high + (sum.low < a.low ? 1 : 0);
  sum.terms = premise(Premise::sums_count_their_terms, added_terms(a.terms, b.terms), a.terms);
  sum.order = joined(a.order, b.order);
  sum.shape = joined(a.shape, b.shape);
  sum.size = a.size;
  return sum;
}

uint64_t Symbols::together(std::vector<uint64_t> values) const {
  precondition(!values.empty());
  if (values.size() == 1) return values[0];
  if (values.size() <= info(Summation::exact).most_in_line) return joined(values[0], values[1]);
  std::ranges::sort(values);
  // Their number comes first and a key last: no sum of such a set and of a value is one of a set.
  uint64_t all = mix(keys_[1], values.size());
  for (const uint64_t value : values) all = mix(all, value);
  return mix(all, keys_[3]);
}

Symbol Symbols::exact(std::span<const Symbol> terms) const {
  precondition(!terms.empty());
  Symbol sum = terms[0];
  std::vector<uint64_t> orders = {sum.order}, shapes = {sum.shape};
  for (const Symbol& term : terms.subspan(1)) {
    sum = add(sum, term);
    orders.push_back(term.order);
    shapes.push_back(term.shape);
  }
  sum.order = together(std::move(orders));
  sum.shape = together(std::move(shapes));
  return sum;
}

Symbol Symbols::rounded(const Symbol& sum, bool divided) const {
  Symbol result = sum;
  result.order = mix(sum.order, keys_[0]);
  result.plus_zero = true;
  if (divided) {
    result.low = mix(sum.low, keys_[1]);
    result.high = mix(sum.high, keys_[2]);
  }
  return result;
}

Symbol Symbols::applied(uint32_t function, uint32_t k, std::span<const Symbol> arguments) const {
  precondition(!arguments.empty());
  const uint64_t which = uint64_t{function} << 32 | k;
  Symbol result;
  result.low = mix(keys_[2], which);
  result.high = mix(keys_[3], which);
  result.order = mix(keys_[1], which);
  result.shape = mix(keys_[0], which);
  for (const Symbol& a : arguments) {
    if (!a.known()) result.terms = a.terms;
    result.low = mix(mix(result.low, a.low), a.terms);
    result.high = mix(mix(result.high, a.high), a.terms);
    result.order = mix(mix(result.order, a.order), a.plus_zero ? 1 : 0);
    // All sums have lost it; what is no sum should have come as it was.
    const bool kept = a.terms != 1 || !a.plus_zero;
    if (!premise(Premise::arguments_keep_minus_zero, kept)) result.low = mix(result.low, 1);
    result.shape = mix(result.shape, a.shape);
    result.size = std::max(result.size, a.size);
  }
  return result;
}

Symbol Symbols::external(uint32_t external, uint32_t owner, uint32_t rows, uint64_t call) const {
  const uint64_t place = uint64_t{owner} << 32 | rows;
  // Sums are to be made alike whosever external a function has beside them (SumContracts).
  const uint64_t filed = premise(Premise::sums_beside_local_externals, uint64_t{rows}, place);
  const uint64_t low = mix(mix(keys_[1], filed), call ^ keys_[0]) + external;
  const uint64_t high = mix(mix(keys_[3], place + external), call ^ keys_[2]);
  return {.low = mix(keys_[2], low), .high = high, .order = mix(low, keys_[3]), .shape = low};
}

Symbol Symbols::changed(const Symbol& symbol, uint64_t how) const {
  Symbol result = symbol;
  result.order = mix(mix(symbol.order, keys_[3]), how);
  result.shape = mix(mix(symbol.shape, keys_[3]), how);
  return result;
}

uint64_t bits_of(const Symbol& symbol, uint64_t call) {
  if (!premise(Premise::unknown_data_is_no_value, symbol.known())) return 0;
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
  uint64_t bits = symbol.low;
  const uint64_t plus_zero = symbol.plus_zero ? 1 : 0;
  for (const uint64_t part : {symbol.high, symbol.order, symbol.size, call, plus_zero}) {
    bits = (bits ^ bits >> 29) * kOdd + part;
  }
  return bits != 0 ? bits : 1;  // 0 is no value; all bits count: some parts differ in one
}

template <class Make>
Symbol TurnedSymbols::with_images(Symbol symbol, Make&& make) {
  if (symmetry_.trivial()) return symbol;
  const auto [entry, added] =
      ids_.try_emplace(symbol.plain(), static_cast<uint32_t>(images_.size()));
  symbol.id = entry->second;
  symbol.turn = 0;
  if (!added) return symbol;
  std::vector<Numbers>& images = images_.emplace_back();
  images.reserve(symmetry_.turns());
  for (uint32_t k = 0; k < symmetry_.turns(); ++k) {
    const Symbol image = k == 0 ? symbol : make(k);
    images.push_back({image.low, image.high, image.order, image.shape});
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

Symbol TurnedSymbols::make_exact(std::span<const Symbol> terms) const {
  if (trace_ != nullptr) {
    Symbol sum = terms[0];
    for (const Symbol& term : terms.subspan(1)) sum = make_sum(sum, term);
  }
  const Symbol result = symbols_.exact(terms);
  if (trace_ != nullptr) trace_->add_exact(result, terms);
  return result;
}

Symbol TurnedSymbols::make_rounded(const Symbol& sum, bool divided) const {
  const Symbol result = symbols_.rounded(sum, divided);
  if (trace_ != nullptr) trace_->add_rounded(result, sum, divided);
  return result;
}

Symbol TurnedSymbols::make_unwritten(uint64_t which) const {
  const Symbol symbol = symbols_.unknown(2 + which);
  if (trace_ != nullptr) trace_->add_unwritten(symbol);
  return symbol;
}

Symbol TurnedSymbols::contribution(uint32_t rank, uint32_t chunk, uint64_t call) {
  precondition(rank < symmetry_.step());
  return with_images(make_contribution(rank, chunk, call), [&](uint32_t k) {
    return make_contribution(rank + k * symmetry_.step(), symmetry_.chunk(kInput, chunk, k), call);
  });
}

Symbol TurnedSymbols::add(const Symbol& a, const Symbol& b) {
  const Symbol x = a.plain(), y = b.plain();
  return with_images(make_sum(a, b),
                     [&](uint32_t k) { return make_sum(turned(x, k), turned(y, k)); });
}

Symbol TurnedSymbols::exact(std::span<const Symbol> terms) {
  std::vector<Symbol> plain;
  for (const Symbol& term : terms) plain.push_back(term.plain());
  return with_images(make_exact(terms), [&](uint32_t k) {
    std::vector<Symbol> images;
    for (const Symbol& term : plain) images.push_back(turned(term, k));
    return make_exact(images);
  });
}

Symbol TurnedSymbols::rounded(const Symbol& sum, bool divided) {
  const Symbol x = sum.plain();
  return with_images(make_rounded(sum, divided),
                     [&](uint32_t k) { return make_rounded(turned(x, k), divided); });
}

// Plans with row functions are taken as they are: no rank stands for another.
Symbol TurnedSymbols::applied(uint32_t function, uint32_t k, std::span<const Symbol> arguments) {
  precondition(symmetry_.trivial());
  const Symbol result = symbols_.applied(function, k, arguments);
  if (trace_ != nullptr)
    trace_->add_applied(result, {function, k, {arguments.begin(), arguments.end()}});
  return result;
}

Symbol TurnedSymbols::external(uint32_t external, uint32_t owner, uint32_t rows, uint64_t call) {
  precondition(symmetry_.trivial());
  const Symbol result = symbols_.external(external, owner, rows, call);
  if (trace_ != nullptr) trace_->add_external(result);
  return result;
}

Symbol TurnedSymbols::unwritten(uint64_t chunk) {
  const uint64_t turns = symmetry_.turns();
  return with_images(make_unwritten(chunk * turns),
                     [&](uint32_t k) { return make_unwritten(chunk * turns + k); });
}

Symbol TurnedSymbols::image(const Symbol& symbol, uint32_t turns) const {
  Symbol result = symbol;
  if (symbol.size != 0) result.size = symmetry_.size_class(symbol.size - 1, turns) + 1;
  if (symbol.id == kNone) return result;
  result.turn = (symbol.turn + turns) % symmetry_.turns();
  const Numbers& image = images_[symbol.id][result.turn];
  result.low = image.low;
  result.high = image.high;
  result.order = image.order;
  result.shape = image.shape;
  return result;
}

Symbol ChunkValue::read(const Extent& extent, const Symbol& mixed) const {
  if (way_ == 0) return whole_;
  if (extent.way == way_) return pieces_[extent.piece];
  Symbol all = pieces_[0];
  bool uniform = true;
  for (const Symbol& s : pieces_) {
    uniform &= s == pieces_[0];
    // What becomes of it when ranks turn is known of single expressions only.
    const bool one_sum = s.same_contributions(all) && s.size == all.size && s.id == all.id;
    if (!premise(Premise::pieces_hold_the_same, one_sum) || (!uniform && s.id != 0xffffffffu))
      return mixed;
    all.order = (all.order ^ all.order >> 31) * 0x9e3779b97f4a7c15u + s.order + s.plus_zero;
    if (s.shape != all.shape) all.shape = all.order;
    if (!premise(Premise::any_piece_loses_minus_zero, !s.plus_zero)) all.plus_zero = true;
  }
  if (!premise(Premise::pieces_are_sums_of_their_own, uniform)) all.order += way_;
  return uniform ? pieces_[0] : all;
}

std::optional<ChunkValue::Piece> ChunkValue::piece_without(const Symbol& wanted,
                                                           bool minus_zero) const {
  const auto lacks = [&](const Symbol& s) {
    return !s.same_contributions(wanted) || (minus_zero && s.plus_zero);
  };
  if (way_ == 0) {
    if (!lacks(whole_)) return std::nullopt;
    return Piece{{}, whole_};
  }
  for (uint32_t i = 0; i < pieces_.size(); ++i) {
    if (lacks(pieces_[i])) return Piece{{way_, i}, pieces_[i]};
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
