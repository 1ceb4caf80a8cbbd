#include "ir/rows/print_row.h"

#include <charconv>
#include <cmath>

#include "ir/support/precondition.h"

namespace mscclc::rows {
namespace {

/// How tightly an expression holds together.
enum Level : int { kConditional, kSum, kProduct, kNegation, kPrimary };

std::string type_text(std::string_view kind, uint32_t group, Kind which) {
  std::string text(kind);
  if (which == Kind::groups) text += "(" + std::to_string(group) + ")";
  return text;
}

class Printer {
 public:
  explicit Printer(const Function& function) : function_(function) {
    names_.resize(function.nodes.size());
    for (const Stored& param : function.params) names_[param.node] = param.name;
    for (const Let& let : function.lets) {
      if (names_[let.node].empty()) names_[let.node] = let.name;
    }
  }

  std::string text() const {
    std::string out = "row " + function_.name + "(";
    for (const Stored& param : function_.params) {
      if (&param != &function_.params.front()) out += ", ";
      out += declared(param);
    }
    out += ")";
    if (function_.rounding == Rounding::once) out += " round: once";
    out += " {\n";
    for (const Let& let : function_.lets) {
      if (names_[let.node] != let.name) continue;  // a second name
      out += "  let " + let.name + " = " + expression(let.node, kConditional) + "\n";
    }
    for (const Stored& output : function_.outputs) {
      out += "  out " + declared(output) + " = " + use(output.node, kConditional) + "\n";
    }
    return out + "}\n";
  }

 private:
  static std::string declared(const Stored& one) {
    return one.name + ": " + type_text(name_of(one.kind), one.group, one.kind) + " " +
           std::string(name_of(one.type));
  }

  /// The value by its name, if it has one.
  std::string use(uint32_t node, Level least) const {
    return names_[node].empty() ? expression(node, least) : names_[node];
  }

  /// How the value is made; in parentheses unless it holds together as tightly as `least`.
  std::string expression(uint32_t node, Level least) const {
    const bool mean = is_mean(function_.nodes[node]);
    const Level level = mean ? kPrimary : level_of(function_.nodes[node].op);
    std::string text = bare(function_.nodes[node]);
    return level < least ? "(" + text + ")" : text;
  }

  /// A sum over the row, divided by its columns, neither with a name of its own.
  bool is_mean(const Node& node) const {
    if (node.op != Op::div) return false;
    const uint32_t sum = node.args[0], by = node.args[1];
    return function_.nodes[sum].op == Op::reduce_sum && function_.nodes[sum].over == 0 &&
           names_[sum].empty() && function_.nodes[by].op == Op::columns && names_[by].empty();
  }

  static Level level_of(Op op) {
    switch (op) {
      case Op::if_less:
      case Op::if_most:
      case Op::if_equal:
        return kConditional;
      case Op::add:
      case Op::sub:
        return kSum;
      case Op::mul:
      case Op::div:
        return kProduct;
      case Op::negate:
        return kNegation;
      default:
        return kPrimary;
    }
  }

  std::string binary(const Node& node, const char* op) const {
    const Level level = level_of(node.op);
    return use(node.args[0], level) + op + use(node.args[1], static_cast<Level>(level + 1));
  }

  std::string conditional(const Node& node, const char* op) const {
    return "if " + use(node.args[0], kSum) + op + use(node.args[1], kSum) + " then " +
           use(node.args[2], kConditional) + " else " + use(node.args[3], kConditional);
  }

  std::string call(const Node& node) const {
    std::string text =
        std::string(node.op == Op::round ? name_of(node.type) : name_of(node.op)) + "(";
    for (uint32_t i = 0; i < argument_count(node.op); ++i) {
      text += (i == 0 ? "" : ", ") + use(node.args[i], kConditional);
    }
    if (node.over != 0) text += " for " + std::to_string(node.over);
    return text + ")";
  }

  std::string bare(const Node& node) const {
    switch (node.op) {
      case Op::param:
        return function_.params[node.index].name;
      case Op::constant:
        return print_number(node.value);
      case Op::columns:
        return "columns";
      case Op::negate:
        return "-" + use(node.args[0], kNegation);
      case Op::add:
        return binary(node, " + ");
      case Op::sub:
        return binary(node, " - ");
      case Op::mul:
        return binary(node, " * ");
      case Op::div:
        if (is_mean(node)) {
          return "mean(" + use(function_.nodes[node.args[0]].args[0], kConditional) + ")";
        }
        return binary(node, " / ");
      case Op::if_less:
        return conditional(node, " < ");
      case Op::if_most:
        return conditional(node, " <= ");
      case Op::if_equal:
        return conditional(node, " == ");
      default:
        return call(node);
    }
  }

  const Function& function_;
  std::vector<std::string> names_;  // by node; "" without one
};

}  // namespace

std::string print_number(float value) {
  precondition(std::isfinite(value) && value >= 0);
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  precondition(error == std::errc());
  return std::string(text, end);
}

std::string print(const Function& function) { return Printer(function).text(); }

}  // namespace mscclc::rows
