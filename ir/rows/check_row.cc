#include "ir/rows/check_row.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string_view>
#include <vector>

#include "ir/support/precondition.h"

namespace mscclc::rows {
namespace {

constexpr std::string_view kReserved[] = {
// Words of row functions.
#define ROW_OP(name, ...) #name,
#include "ir/rows/row_words.def"
#undef ROW_OP
#define ROW_REDUCTION(name, ...) #name,
#include "ir/rows/row_words.def"
#undef ROW_REDUCTION
#define ROW_TYPE(name, bytes) #name,
#include "ir/rows/row_words.def"
#undef ROW_TYPE
#define ROW_KIND(name, ...) #name,
#include "ir/rows/row_words.def"
#undef ROW_KIND
    "mean", "out", "let",
    // Words of the language that are no names anywhere (ast::is_reserved).
    "for", "if", "else", "in", "where", "then", "or", "and", "not", "except", "true", "false"};

class Check {
 public:
  explicit Check(const Function& function) : function_(function) {}

  std::optional<std::string> run() {
    if (!sizes() || !names() || !values() || !stored(function_.params, true) ||
        !stored(function_.outputs, false) || !named() || !expressions()) {
      return fault_;
    }
    return {};
  }

 private:
  bool no(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  bool sizes() {
    if (function_.outputs.empty()) return no("it has no result");
    if (function_.params.size() > kMaxParams || function_.outputs.size() > kMaxOutputs ||
        function_.nodes.size() > kMaxNodes || function_.lets.size() > kMaxNodes) {
      return no("it is too large");
    }
    const auto reductions = std::ranges::count_if(
        function_.nodes, [](const Node& node) { return is_reduction(node.op); });
    return reductions <= static_cast<std::ptrdiff_t>(kMaxReductions) ||
           no("it has too many reductions");
  }

  bool names() {
    std::set<std::string_view> known;
    const auto add = [&](std::string_view name) {
      if (!is_row_name(name)) return no("it has a name that is none");
      return known.insert(name).second || no("it has two of the name '" + std::string(name) + "'");
    };
    if (!is_row_name(function_.name)) return no("its name is none");
    const auto all = [&](const auto& list) {
      return std::ranges::all_of(list, [&](const auto& one) { return add(one.name); });
    };
    return all(function_.params) && all(function_.lets) && all(function_.outputs);
  }

  bool values() {
    for (uint32_t i = 0; i < function_.nodes.size(); ++i) {
      const Node& node = function_.nodes[i];
      const uint32_t n = argument_count(node.op);
      for (uint32_t k = 0; k < node.args.size(); ++k) {
        const bool right = k < n ? node.args[k] < i : node.args[k] == kNoNode;
        if (!right) return no("a value is made of what does not come before it");
      }
      if (!leaf(i)) return false;
      Node wanted = node;
      if (!set_spread(function_, wanted)) return no("a value is made of what does not go together");
      if (wanted.spread != node.spread || wanted.group != node.group) {
        return no("a value spreads otherwise than what it is made of");
      }
      if (node.over != 0 && !is_reduction(node.op)) return no("a value is over groups");
    }
    return true;
  }

  bool leaf(uint32_t i) {
    const Node& node = function_.nodes[i];
    if (node.op == Op::constant && (!std::isfinite(node.value) || std::signbit(node.value))) {
      return no("a constant is no number, or below zero");
    }
    if (node.op != Op::param) return true;
    return (node.index < function_.params.size() && function_.params[node.index].node == i) ||
           no("a value is a parameter that there is not");
  }

  bool stored(const std::vector<Stored>& list, bool input) {
    for (const Stored& one : list) {
      const bool kind = input ? can_be_input(one.kind) : can_be_output(one.kind);
      const bool groups = one.kind == Kind::groups;
      const bool group =
          groups ? one.group >= 2 && one.group <= kMaxGroup && std::has_single_bit(one.group)
                 : one.group == 0;
      if (!kind || !group) return no("'" + one.name + "' is of a kind that it cannot be");
      if (one.node >= function_.nodes.size()) return no("'" + one.name + "' has no value");
      const Node& node = function_.nodes[one.node];
      if (input) {
        if (node.op != Op::param) return no("'" + one.name + "' is no parameter");
      } else if (node.spread > spread_of(one.kind) ||
                 (groups && node.spread == Spread::groups && node.group != one.group)) {
        return no("'" + one.name + "' spreads further than its kind");
      }
    }
    return true;
  }

  /// A value that two use has a name, so that its text stands once.
  bool named() {
    const size_t n = function_.nodes.size();
    names_.assign(n, false);
    for (const Stored& param : function_.params) names_[param.node] = true;
    uint32_t last = 0;
    for (const Let& let : function_.lets) {
      if (let.node >= n) return no("'" + let.name + "' has no value");
      if (let.node < last && !names_[let.node]) return no("'" + let.name + "' is out of order");
      last = std::max(last, let.node);
      names_[let.node] = true;
    }
    std::vector<uint32_t> uses(n);
    for (const Node& node : function_.nodes) {
      for (uint32_t k = 0; k < argument_count(node.op); ++k) ++uses[node.args[k]];
    }
    for (const Stored& output : function_.outputs) ++uses[output.node];
    for (size_t i = 0; i < n; ++i) {
      if (!names_[i] && uses[i] != 1)
        return no("a value without a name is used more than once, or never");
    }
    return true;
  }

  bool expressions() {
    std::vector<uint32_t> depth(function_.nodes.size());
    for (size_t i = 0; i < depth.size(); ++i) {
      const Node& node = function_.nodes[i];
      for (uint32_t k = 0; k < argument_count(node.op); ++k) {
        const uint32_t arg = node.args[k];
        depth[i] = std::max(depth[i], names_[arg] ? 1 : depth[arg] + 1);
      }
      if (depth[i] > kMaxNodeDepth) {
        return no("an expression is deeper than " + std::to_string(kMaxNodeDepth) +
                  " values; name parts of it with 'let'");
      }
    }
    return true;
  }

  const Function& function_;
  std::vector<bool> names_;  ///< by value: it has one
  std::string fault_;
};

}  // namespace

std::optional<std::string> fault_of(const Function& function) { return Check(function).run(); }

bool set_spread(const Function& function, Node& node) {
  precondition([&] {
    return std::ranges::all_of(std::span(node.args).first(argument_count(node.op)),
                               [&](uint32_t arg) { return arg < function.nodes.size(); });
  });
  if (node.op == Op::param) {
    if (node.index >= function.params.size()) return false;
    node.spread = spread_of(function.params[node.index].kind);
    node.group = function.params[node.index].group;
    return true;
  }
  if (is_reduction(node.op)) {
    const bool group = node.over == 0 ||
                       (node.over >= 2 && node.over <= kMaxGroup && std::has_single_bit(node.over));
    if (!group || function.nodes[node.args[0]].spread != Spread::columns) return false;
    node.spread = node.over == 0 ? Spread::once : Spread::groups;
    node.group = node.over;
    return true;
  }
  node.spread = Spread::once;
  node.group = 0;
  for (uint32_t k = 0; k < argument_count(node.op); ++k) {
    const Node& arg = function.nodes[node.args[k]];
    if (node.spread == Spread::groups && arg.spread == Spread::groups && node.group != arg.group) {
      return false;
    }
    if (arg.spread <= node.spread) continue;
    node.spread = arg.spread;
    node.group = arg.group;
  }
  return true;
}

bool is_row_name(std::string_view name) {
  constexpr size_t kMaxName = 256;
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto more = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= kMaxName && letter(name[0]) &&
         std::ranges::all_of(name, more) &&
         std::ranges::find(kReserved, name) == std::end(kReserved);
}

}  // namespace mscclc::rows
