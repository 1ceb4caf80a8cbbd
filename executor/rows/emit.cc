#include "executor/rows/emit.h"

#include <bit>
#include <cstdio>

#include "executor/rows/emit_order.h"
#include "ir/support/precondition.h"

namespace mscclc::rows {
namespace {

std::string number(uint32_t n) { return std::to_string(n); }

/// In which loop of the source a value is used: what its name is there.
enum class Loop { straight, groups, columns };

class Emitter {
 public:
  Emitter(const Function& function, Dtype t)
      : function_(function), t_(t), order_(order_of(function)) {}

  std::string text(const std::string& name) {
    out_ = "// " + function_.name + ": T is " + std::string(info(t_).name) +
           ", round: " + (function_.rounding == Rounding::once ? "once" : "chain") +
           "\n"
           "template <uint32_t kChunk, class Block, class Row>\n"
           "MSCCLC_RUN inline void " +
           name +
           "(Block& block, const Row& row, uint32_t columns) {\n"
           "  const uint32_t begin = block.thread() * kChunk;\n"
           "  [[maybe_unused]] const uint32_t present = present_columns<kChunk>(block, columns);\n"
           "  [[maybe_unused]] const uint32_t folded = folded_columns<kChunk>(present, columns);\n"
           "  [[maybe_unused]] const uint32_t owners = (columns + kChunk - 1) / kChunk;\n";
    for (uint32_t p = 0; p < order_.phases; ++p) phase(p);
    return out_ + "}\n";
  }

 private:
  const Node& node(uint32_t n) const { return function_.nodes[n]; }

  // ---- names and types ----

  std::string element(Type type) const {
    if (type == Type::e8m0) return "PowerOfTwo";
    const std::string_view name = type == Type::T ? info(t_).name : name_of(type);
    return "device::Element<Dtype::" + std::string(name) + ">";
  }

  std::string loaded(uint32_t n, const std::string& at) const {
    const Stored& param = function_.params[node(n).index];
    return "row.template load<" + number(node(n).index) + ", " + element(param.type) + ">(" + at +
           ")";
  }

  std::string stored(uint32_t k, const std::string& at, const std::string& value) const {
    const std::string type = element(function_.outputs[k].type);
    return "row.template store<" + number(k) + ", " + type + ">(" + at + ", " + value + ");\n";
  }

  /// A parameter that is read again in each phase that needs it, as it never changes.
  bool is_reread(uint32_t n) const {
    return node(n).op == Op::param && function_.params[node(n).index].kind == Kind::columns;
  }

  /// A value of columns that a later phase needs lies in an array.
  bool is_kept(uint32_t n) const {
    return node(n).spread == Spread::columns && !is_reread(n) &&
           order_.nodes[n].last > order_.nodes[n].phase;
  }

  std::string use(uint32_t n, Loop loop, uint32_t p) const {
    const Node& of = node(n);
    char text[32];
    switch (of.op) {
      case Op::constant:
        std::snprintf(text, sizeof text, "float_of(0x%08xu)", std::bit_cast<uint32_t>(of.value));
        return text;
      case Op::columns:
        return "static_cast<float>(columns)";
      default:
        break;
    }
    if (of.spread == Spread::once) return "v" + number(n);
    if (of.spread == Spread::groups) {
      return "v" + number(n) + (loop == Loop::groups ? "[g]" : "[i / " + number(of.group) + "]");
    }
    const bool earlier = !is_reread(n) && order_.nodes[n].phase < p;
    return earlier ? "k" + number(n) + "[i]" : "v" + number(n);
  }

  /// Is it a quotient of each column by what several have in common, as a scale?
  bool shares_divisor(uint32_t n) const {
    const Node& of = node(n);
    if (of.op != Op::div || of.spread != Spread::columns) return false;
    const Node& by = node(of.args[1]);
    return by.spread != Spread::columns && by.op != Op::columns && by.op != Op::constant;
  }

  /// Has a value been loaded as this type, or rounded to it?
  bool is_rounded(uint32_t n, Type type) const {
    const Node& of = node(n);
    if (of.op == Op::param) return function_.params[of.index].type == type;
    return of.op == Op::round && of.type == type;
  }

  /// How a value is made of others, where they are at hand.
  std::string made(uint32_t n, Loop loop, uint32_t p) const {
    const Node& of = node(n);
    std::array<std::string, 4> x;
    for (uint32_t a = 0; a < argument_count(of.op); ++a) x[a] = use(of.args[a], loop, p);
    const auto chosen = [&](const char* compare) {
      return x[0] + compare + x[1] + " ? " + x[2] + " : " + x[3];
    };
    switch (of.op) {
      case Op::negate:
        return "negate(" + x[0] + ")";
      case Op::add:
        return "add(" + x[0] + ", " + x[1] + ")";
      case Op::sub:
        return "sub(" + x[0] + ", " + x[1] + ")";
      case Op::mul:
        return "mul(" + x[0] + ", " + x[1] + ")";
      case Op::div:
        if (node(of.args[1]).op == Op::columns) return "div_by_count(" + x[0] + ", columns)";
        return (shares_divisor(n) ? "divide(" : "div(") + x[0] + ", " + x[1] + ")";
      case Op::if_less:
        return chosen(" < ");
      case Op::if_most:
        return chosen(" <= ");
      case Op::if_equal:
        return chosen(" == ");
      case Op::round:
        if (of.type == Type::T && function_.rounding == Rounding::once) return x[0];
        if (is_rounded(of.args[0], of.type)) return x[0];
        return "round_to<" + element(of.type) + ">(" + x[0] + ")";
      default:
        return called(of, x);
    }
  }

  static std::string called(const Node& of, const std::array<std::string, 4>& x) {
    std::string text = "call_" + std::string(name_of(of.op)) + "(";
    for (uint32_t a = 0; a < argument_count(of.op); ++a) text += (a == 0 ? "" : ", ") + x[a];
    return text + ")";
  }

  std::string reduce_type(Op op) const {
    return op == Op::reduce_sum ? "ReduceSum" : op == Op::reduce_max ? "ReduceMax" : "ReduceMin";
  }

  // ---- the parts of a phase ----

  /// Calls `each` with the values of this phase that spread so.
  template <class Each>
  void values(uint32_t p, Spread spread, Each each) {
    for (uint32_t n = 0; n < function_.nodes.size(); ++n) {
      const NodeOrder& order = order_.nodes[n];
      const bool made_here = !is_literal(node(n).op) && !is_reduction(node(n).op) && !is_reread(n);
      if (order.live && order.phase == p && node(n).spread == spread && made_here) each(n);
    }
  }

  /// Calls `each` with the results of this kind of spread that are complete in this phase.
  template <class Each>
  void results(uint32_t p, Spread spread, Each each) {
    for (uint32_t k = 0; k < function_.outputs.size(); ++k) {
      const Stored& output = function_.outputs[k];
      if (spread_of(output.kind) == spread && order_.nodes[output.node].phase == p) each(k, output);
    }
  }

  void phase(uint32_t p) {
    values(p, Spread::once, [&](uint32_t n) {
      out_ += "  const float v" + number(n) + " = " +
              (node(n).op == Op::param ? loaded(n, "0") : made(n, Loop::straight, p)) + ";\n";
    });
    group_values(p);
    if (p == 0 && meets_before_results(function_)) out_ += "  block.sync();\n";
    results(p, Spread::once, [&](uint32_t k, const Stored& output) {
      out_ += "  if (begin == 0) " + stored(k, "0", use(output.node, Loop::straight, p));
    });
    group_results(p);
    columns_of(p);
    for (uint32_t n = 0; n < function_.nodes.size(); ++n) {
      if (order_.nodes[n].live && is_reduction(node(n).op) && order_.nodes[n].phase == p + 1) {
        reduction(n);
      }
    }
  }

  void group_loop(uint32_t group, const std::string& body) {
    const std::string g = number(group);
    out_ += "  for (uint32_t g = 0; g < kGroupsOf<kChunk, " + g + ">; ++g) {\n" +
            "    const uint32_t group = begin / " + g + " + g;\n" + "    if (group * " + g +
            " >= columns) break;\n" + body + "  }\n";
  }

  void group_values(uint32_t p) {
    values(p, Spread::groups, [&](uint32_t n) {
      const std::string v = "v" + number(n), g = number(node(n).group);
      out_ += "  float " + v + "[kGroupsOf<kChunk, " + g + ">] = {};\n";
      const std::string value =
          node(n).op == Op::param ? loaded(n, "group") : made(n, Loop::groups, p);
      group_loop(node(n).group, "    " + v + "[g] = " + value + ";\n");
    });
  }

  void group_results(uint32_t p) {
    results(p, Spread::groups, [&](uint32_t k, const Stored& output) {
      const std::string first = "    if (begin % " + number(output.group) + " == 0 || kChunk > " +
                                number(output.group) + ") ";
      group_loop(output.group, first + stored(k, "group", use(output.node, Loop::groups, p)));
    });
  }

  /// The loop over a thread's columns.
  void columns_of(uint32_t p) {
    std::string arrays, loads, body;
    bool divides = false;
    std::vector<bool> reread(function_.nodes.size());
    const auto needs = [&](uint32_t n) {
      if (is_reread(n)) reread[n] = true;
    };
    values(p, Spread::columns, [&](uint32_t n) {
      for (uint32_t a = 0; a < argument_count(node(n).op); ++a) needs(node(n).args[a]);
      divides |= shares_divisor(n);
      body += "    const float v" + number(n) + " = " +
              (node(n).op == Op::param ? loaded(n, "column") : made(n, Loop::columns, p)) + ";\n";
      if (!is_kept(n)) return;
      arrays += "  float k" + number(n) + "[kChunk] = {};\n";
      body += "    k" + number(n) + "[i] = v" + number(n) + ";\n";
    });
    for (uint32_t n = 0; n < function_.nodes.size(); ++n) {
      if (!order_.nodes[n].live || !is_reduction(node(n).op) || order_.nodes[n].phase != p + 1)
        continue;
      needs(node(n).args[0]);
      arrays += "  float r" + number(n) + "[kChunk] = {};\n";
      body += "    r" + number(n) + "[i] = " + use(node(n).args[0], Loop::columns, p) + ";\n";
    }
    results(p, Spread::columns, [&](uint32_t k, const Stored& output) {
      needs(output.node);
      body += "    " + stored(k, "column", use(output.node, Loop::columns, p));
    });
    for (uint32_t n = 0; n < function_.nodes.size(); ++n) {
      if (reread[n]) loads += "    const float v" + number(n) + " = " + loaded(n, "column") + ";\n";
    }
    if (body.empty()) return;
    out_ += arrays + (divides ? "  divide_quickly<Row>([&](auto divide) {\n" : "") +
            "  MSCCLC_UNROLL\n"
            "  for (uint32_t i = 0; i < kChunk; ++i) {\n"
            "    if (ends_at<kChunk>(i, present, columns)) break;\n"
            "    [[maybe_unused]] const uint32_t column = begin + i;\n" +
            loads + body + "  }\n" + (divides ? "  });\n" : "");
  }

  void reduction(uint32_t n) {
    const std::string v = "v" + number(n), r = "r" + number(n), how = reduce_type(node(n).op);
    if (node(n).over == 0) {
      out_ += "  fold<" + how + ">(" + r + ", kChunk, folded);\n" + "  const float " + v +
              " = reduce_threads<" + how + ">(block, " + r + "[0], width_for(owners), owners);\n";
      return;
    }
    const std::string g = number(node(n).over);
    out_ += "  fold<" + how + ">(" + r + ", " + g + ", folded);\n" + "  float " + v +
            "[kGroupsOf<kChunk, " + g + ">] = {};\n" + "  if constexpr (kChunk >= " + g + ") {\n" +
            "    for (uint32_t g = 0; g < kGroupsOf<kChunk, " + g + ">; ++g) " + v + "[g] = " + r +
            "[g * " + g + "];\n" + "  } else {\n    " + v + "[0] = reduce_threads<" + how +
            ">(block, " + r + "[0], " + g + " / kChunk, owners);\n  }\n";
  }

  const Function& function_;
  const Dtype t_;
  const PhaseOrder order_;
  std::string out_;
};

}  // namespace

bool meets_before_results(const Function& function) {
  const PhaseOrder order = order_of(function);
  for (uint32_t k = 0; k < function.outputs.size(); ++k) {
    const Stored& output = function.outputs[k];
    if (spread_of(output.kind) == Spread::columns || order.nodes[output.node].phase != 0) continue;
    for (uint32_t n = 0; n < function.nodes.size(); ++n) {
      const Node& node = function.nodes[n];
      const bool other_param = order.nodes[n].live && node.op == Op::param && n != output.node;
      if (other_param && keeps_form(function, k, node.index)) return true;
    }
  }
  return false;
}

std::string emit(const Function& function, Dtype t, const std::string& name) {
  precondition(can_be_t(t));
  return Emitter(function, t).text(name);
}

}  // namespace mscclc::rows
