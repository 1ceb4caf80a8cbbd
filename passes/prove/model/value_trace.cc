#include "passes/prove/model/value_trace.h"

#include <limits>

namespace mscclc::proof {

void ValueTrace::add(const Symbol& symbol, const Node& node) {
  if (ids_.try_emplace({symbol.low, symbol.high}, static_cast<uint32_t>(nodes_.size())).second) {
    nodes_.push_back(node);
  }
}

uint32_t ValueTrace::find(const Symbol& symbol) {
  add(symbol, {Kind::unknown});
  return ids_.at({symbol.low, symbol.high});
}

void ValueTrace::add_input(const Symbol& symbol, const Contribution& input) {
  expressions_.add_input(symbol.order, input.rank);
  inputs_.push_back(input);
  add(symbol, {Kind::input, static_cast<uint32_t>(inputs_.size() - 1)});
}

void ValueTrace::add_unwritten(const Symbol& symbol) { add(symbol, {Kind::unwritten}); }

void ValueTrace::note_read(const Symbol& symbol, const FirstRead& read) {
  const auto node = ids_.find({symbol.low, symbol.high});
  if (node == ids_.end() || nodes_[node->second].kind != Kind::unwritten) return;
  reads_.try_emplace(node->second, read);
}

void ValueTrace::add_raced(const Symbol& symbol) {
  add(symbol, {.kind = Kind::raced, .raced = true});
}

bool ValueTrace::raced(const Symbol& symbol) const {
  const auto node = ids_.find({symbol.low, symbol.high});
  return node != ids_.end() && nodes_[node->second].raced;
}

void ValueTrace::add_sum(const Symbol& sum, const Symbol& a, const Symbol& b) {
  expressions_.add_sum(sum.order, a.order, b.order);
  const uint32_t left = find(a), right = find(b);
  add(sum, {Kind::sum, left, right, nodes_[left].raced || nodes_[right].raced});
}

void ValueTrace::add_exact(const Symbol& sum, std::span<const Symbol> terms) {
  std::vector<uint64_t> orders;
  for (const Symbol& term : terms) orders.push_back(term.order);
  expressions_.add_exact(sum.order, std::move(orders));
}

void ValueTrace::add_rounded(const Symbol& result, const Symbol& sum, bool divided) {
  expressions_.add_rounded(result.order, sum.order);
  if (!divided) return;
  const uint32_t part = find(sum);
  add(result, {Kind::divided, part, 0, nodes_[part].raced});
}

void ValueTrace::add_applied(const Symbol& result, Applied applied) {
  bool raced = false;
  for (const Symbol& a : applied.arguments) raced |= nodes_[find(a)].raced;
  add(result, {.kind = Kind::applied, .raced = raced});
  applied_.try_emplace({result.low, result.high}, std::move(applied));
}

void ValueTrace::add_external(const Symbol& symbol) { add(symbol, {Kind::external}); }

const ValueTrace::Applied* ValueTrace::applied(const Symbol& symbol) const {
  const auto found = applied_.find({symbol.low, symbol.high});
  return found == applied_.end() ? nullptr : &found->second;
}

std::string ValueTrace::canonical(const Symbol& symbol, uint32_t first, uint32_t ranks) const {
  uint64_t order = symbol.order;
  if (const Applied* const made = applied(symbol)) {
    for (const Symbol& a : made->arguments) {
      if (expressions_.known(a.order)) order = a.order;
    }
  }
  return expressions_.canonical(order, first, ranks);
}

ValueTrace::Content ValueTrace::content(const Symbol& symbol) const {
  Content content;
  const auto root = ids_.find({symbol.low, symbol.high});
  if (root == ids_.end()) {
    content.unknown = true;
    return content;
  }
  // How often each node is in it, from what was made last to what it was made of.
  std::vector<uint64_t> times(root->second + 1, 0);
  const auto more = [&](uint32_t node, uint64_t n) {
    constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
    times[node] = n > kMax - times[node] ? kMax : times[node] + n;
  };
  times[root->second] = 1;
  for (uint32_t i = root->second + 1; i-- > 0;) {
    if (times[i] == 0) continue;
    const Node& node = nodes_[i];
    switch (node.kind) {
      case Kind::input:
        content.inputs[inputs_[node.a]] = times[i];
        break;
      case Kind::unwritten:
        content.unwritten = true;
        if (const auto read = reads_.find(i); read != reads_.end()) content.read = read->second;
        break;
      case Kind::unknown:
      case Kind::raced:
        content.unknown = true;
        break;
      case Kind::applied:
      case Kind::external:
        content.applied = true;
        break;
      case Kind::sum:
        more(node.a, times[i]);
        more(node.b, times[i]);
        break;
      case Kind::divided:
        (i == root->second ? content.divided : content.parts_divided) = true;
        more(node.a, times[i]);
        break;
    }
  }
  return content;
}

}  // namespace mscclc::proof
