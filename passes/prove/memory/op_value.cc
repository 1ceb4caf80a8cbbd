#include "passes/prove/memory/op_value.h"

#include <algorithm>

#include "ir/ops/trees.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {

OpValue::OpValue(const System& system, const Symbols& symbols, const CallOrder& calls,
                 const OpBytes& bytes, ChunkContents& contents)
    : system_(system), symbols_(symbols), calls_(calls), bytes_(bytes), contents_(contents) {}

void OpValue::add(const Symbol& symbol) {
  value_ = has_value_ ? sum_of(value_, symbol) : symbol;
  has_value_ = true;
  ++loads_;
  loads_sum_ |= symbol.terms > 1;
}

void OpValue::set_sum(std::span<const Symbol> terms, Summation summation) {
  value_ = summation == Summation::exact ? exact_of(terms) : tree_of(terms);
}

void OpValue::round(bool divided) {
  adds_sums_ |= loads_ > 1 && loads_sum_;
  value_ = contents_.symbols().rounded(value_, divided);
}

void OpValue::set_by_switch(uint32_t rank, const Extent& extent) {
  const uint32_t times = switch_sums_[{rank, value_.order, extent.way, extent.piece}]++;
  value_ = symbols_.changed(symbols_.changed(symbols_.changed(value_, rank), extent.way), times);
}

Symbol OpValue::sum_of(const Symbol& a, const Symbol& b) {
  if (!premise(Premise::terms_equally_long, a.size == 0 || b.size == 0 || a.size == b.size)) {
    return contents_.raced(a) ? contents_.of_race() : contents_.mixed_with(b);
  }
  Symbol sum = contents_.symbols().add(a, b);
  sum.size = std::max(a.size, b.size);
  return sum;
}

Symbol OpValue::tree_of(std::span<const Symbol> terms) {
  if (terms.size() == 1) return terms[0];
  const size_t first = first_of_tree(static_cast<uint32_t>(terms.size()));
  return sum_of(tree_of(terms.first(first)), tree_of(terms.subspan(first)));
}

Symbol OpValue::exact_of(std::span<const Symbol> terms) {
  Symbol in_turn = terms[0];  // says whether they can be added up at all
  for (const Symbol& term : terms.subspan(1)) in_turn = sum_of(in_turn, term);
  if (!in_turn.known()) return in_turn;
  Symbol sum = contents_.symbols().exact(terms);
  sum.size = in_turn.size;
  return sum;
}

void OpValue::size_by_caller(uint32_t rank, const Operand& o, uint32_t k) {
  bytes_.each_place(rank, o, k, [&](const ChunkName& name, const Spot&) {
    if (!system_.is_callers(name.buffer)) return;
    const Part& part = calls_.part(rank, calls_.now(rank));
    const Side side = name.buffer == part.input + kInput ? Side::input : Side::output;
    const uint64_t size = part.contract().size_class(side, part.local[name.rank], name.chunk) + 1;
    set_size(size);
  });
}

void OpValue::set_size(uint64_t size) {
  if (!premise(Premise::values_keep_their_length, value_.size == 0 || value_.size == size))
    value_ = contents_.mixed_with(value_);
  value_.size = size;
  sized_ = true;
}

void OpValue::size_as_output(uint32_t rank, uint32_t chunk) {
  const Part& part = calls_.part(rank, calls_.now(rank));
  set_size(part.contract().size_class(Side::output, part.local[rank], chunk) + 1);
}

void OpValue::set_result(uint32_t function, uint32_t k, std::span<const Symbol> arguments) {
  uint64_t size = 0;
  bool one_length = true;
  for (const Symbol& a : arguments) {
    one_length &= size == 0 || a.size == 0 || a.size == size;
    size = std::max(size, a.size);
  }
  value_ = one_length ? contents_.symbols().applied(function, k, arguments)
                      : contents_.mixed_with(arguments[0]);
  value_.size = size;  // as many rows as there were
  for (const Symbol& a : arguments) {
    if (contents_.raced(a)) value_ = contents_.of_race();
  }
  has_value_ = true;
}

}  // namespace mscclc::proof
