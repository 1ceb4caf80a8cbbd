#include "compiler/rows/row_nodes.h"

#include <algorithm>

namespace mscclc::rows {

using ast::TextRange;

namespace {

/// What a value is, in messages.
std::string shown(const Node& node) {
  switch (node.spread) {
    case Spread::once:
      return "one value for the row";
    case Spread::groups:
      return "one value for each " + std::to_string(node.group) + " columns";
    case Spread::columns:
      return "one value for each column";
  }
  return "";
}

}  // namespace

uint32_t NodeMaker::add(const Node& node, TextRange place) {
  if (function_.nodes.size() == kMaxNodes) {
    in_.error("too-many-steps", place,
              "the row function has more than " + std::to_string(kMaxNodes) +
                  " values; divide it into several");
    return kNoNode;
  }
  function_.nodes.push_back(node);
  return static_cast<uint32_t>(function_.nodes.size() - 1);
}

uint32_t NodeMaker::leaf(Node node, TextRange place) { return add(node, place); }

uint32_t NodeMaker::constant(float value, TextRange place) {
  return add({.op = Op::constant, .value = value}, place);
}

/// The value spreads as the argument does, if it does not spread further.
bool NodeMaker::join(Node& node, const Node& arg, TextRange place) {
  if (node.spread == Spread::groups && arg.spread == Spread::groups && node.group != arg.group) {
    in_.error("wrong-type", place,
              "values of groups of " + std::to_string(node.group) + " and of " +
                  std::to_string(arg.group) +
                  " columns do not go together; take groups of one size");
    return false;
  }
  if (arg.spread > node.spread) {
    node.spread = arg.spread;
    node.group = arg.group;
  }
  return true;
}

uint32_t NodeMaker::make(Op op, std::array<uint32_t, 4> args, TextRange place, Type type) {
  Node node{.op = op, .type = type, .args = args};
  for (uint32_t i = 0; i < argument_count(op); ++i) {
    if (args[i] == kNoNode || !join(node, function_.nodes[args[i]], place)) return kNoNode;
  }
  return add(node, place);
}

uint32_t NodeMaker::reduce(Op op, uint32_t arg, uint32_t over, TextRange place) {
  if (arg == kNoNode) return kNoNode;
  const Node& of = function_.nodes[arg];
  if (of.spread != Spread::columns) {
    in_.error("wrong-type", place,
              "'" + std::string(name_of(op)) + "' goes over the columns, and its argument is " +
                  shown(of) + "; use it as it is");
    return kNoNode;
  }
  if (++reductions_ > kMaxReductions) {
    in_.error("too-many-steps", place,
              "the row function has more than " + std::to_string(kMaxReductions) +
                  " reductions; name one with 'let' to use it again");
    return kNoNode;
  }
  Node node{.op = op, .over = over, .args = {arg, kNoNode, kNoNode, kNoNode}};
  node.spread = over == 0 ? Spread::once : Spread::groups;
  node.group = over;
  return add(node, place);
}

uint32_t NodeMaker::mean(uint32_t arg, uint32_t over, TextRange place) {
  const uint32_t sum = reduce(Op::reduce_sum, arg, over, place);
  if (sum == kNoNode) return kNoNode;
  const uint32_t columns = over == 0 ? add({.op = Op::columns}, place) : group_size(over, place);
  return make(Op::div, {sum, columns, kNoNode, kNoNode}, place);
}

/// How many columns each group has, as the last may have fewer: the sum of a 1 for each.
uint32_t NodeMaker::group_size(uint32_t over, TextRange place) {
  const auto spreads = [](const Stored& p) { return spread_of(p.kind) == Spread::columns; };
  const uint32_t any = std::ranges::find_if(function_.params, spreads)->node;
  const uint32_t one = constant(1, place), other = constant(1, place);
  return reduce(Op::reduce_sum, make(Op::if_equal, {any, any, one, other}, place), over, place);
}

bool NodeMaker::fits(uint32_t node, const Stored& output, TextRange place) {
  if (node == kNoNode) return false;
  const Node& value = function_.nodes[node];
  Node wanted{.spread = spread_of(output.kind), .group = output.group};
  const bool other_groups = value.spread == Spread::groups && wanted.spread == Spread::groups &&
                            value.group != wanted.group;
  if (value.spread <= wanted.spread && !other_groups) return true;
  in_.error("wrong-type", place,
            "'" + output.name + "' holds " + shown(wanted) + ", and this is " + shown(value) +
                "; reduce it with 'max' or 'sum', or declare another kind of result");
  return false;
}

}  // namespace mscclc::rows
