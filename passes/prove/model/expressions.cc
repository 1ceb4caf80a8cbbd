#include "passes/prove/model/expressions.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc::proof {
namespace {

constexpr size_t kMaxText = 160;

}  // namespace

std::string Expressions::text(uint64_t order) const {
  std::string text;
  write(order, true, false, text);
  if (text.size() <= kMaxText) return text;
  return text.substr(0, text.rfind(' ', kMaxText)) + " ...";
}

std::string Expressions::canonical(uint64_t order, uint32_t first, uint32_t ranks) const {
  const auto found = nodes_.find(order);
  const bool rounded = found != nodes_.end() && found->second.kind == Kind::rounded;
  return term(rounded ? found->second.left : order, {first, ranks}).text;
}

Expressions::Term Expressions::term(uint64_t order, const Names& names) const {
  const auto found = nodes_.find(order);
  if (found == nodes_.end()) return {1, kNone, "..."};
  const Node& node = found->second;
  switch (node.kind) {
    case Kind::input: {
      if (names.first == kNone) return {1, node.rank, fmt::format("x{}", node.rank)};
      const uint32_t after = (node.rank + names.ranks - names.first) % names.ranks;
      return {1, after, after == 0 ? "x(o)" : fmt::format("x(o+{})", after)};
    }
    case Kind::rounded: {
      Term of = term(node.left, names);
      return {of.leaves, of.lowest, "[" + of.text + "]"};
    }
    case Kind::sum:
      return sum_of(term(node.left, names), term(node.right, names));
    case Kind::exact:
      break;
  }
  std::vector<Term> terms;
  for (const uint64_t part : node.terms) terms.push_back(term(part, names));
  std::ranges::sort(terms, before);
  Term all{0, terms[0].lowest, "exact("};
  for (const Term& part : terms) {
    all.text += (all.leaves == 0 ? "" : ", ") + part.text;
    all.leaves += part.leaves;
    all.lowest = std::min(all.lowest, part.lowest);
  }
  all.text += ")";
  return all;
}

bool Expressions::before(const Term& a, const Term& b) {
  if (a.leaves != b.leaves) return a.leaves > b.leaves;
  if (a.lowest != b.lowest) return a.lowest < b.lowest;
  return a.text < b.text;
}

Expressions::Term Expressions::sum_of(Term a, Term b) {
  if (before(b, a)) std::swap(a, b);
  a.text += b.bare ? " + (" + b.text + ")" : " + " + b.text;
  return {a.leaves + b.leaves, std::min(a.lowest, b.lowest), std::move(a.text), true};
}

/// `outermost`: its rounding says nothing. `grouped`: it stands to the right of a plus.
void Expressions::write(uint64_t order, bool outermost, bool grouped, std::string& text) const {
  if (text.size() > kMaxText) return;
  const auto found = nodes_.find(order);
  if (found == nodes_.end()) {
    text += "...";
    return;
  }
  const Node& node = found->second;
  switch (node.kind) {
    case Kind::input:
      text += 'x' + std::to_string(node.rank);
      return;
    case Kind::rounded:
      text += outermost ? "" : "[";
      write(node.left, false, false, text);
      text += outermost ? "" : "]";
      return;
    case Kind::exact:
      for (size_t i = 0; i < node.terms.size(); ++i) {
        text += i == 0 ? "exact(" : ", ";
        write(node.terms[i], false, false, text);
      }
      text += ")";
      return;
    case Kind::sum:
      text += grouped ? "(" : "";
      write(node.left, false, false, text);
      text += " + ";
      write(node.right, false, true, text);
      text += grouped ? ")" : "";
      return;
  }
}

}  // namespace mscclc::proof
