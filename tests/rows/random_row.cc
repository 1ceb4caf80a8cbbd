#include "tests/rows/random_row.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "compiler/rows/read_rows.h"

namespace mscclc::rows {
namespace {

struct Value {
  std::string name;
  Spread spread;
};

class Generator {
 public:
  explicit Generator(Dice& dice) : dice_(dice) { group_ = uint32_t{2} << dice_.below(9); }

  std::string text(const std::string& name, bool of_sum) {
    std::string out = "row " + name + "(" + params(of_sum) + ")";
    if (dice_.below(3) == 0) out += " round: once";
    out += " {\n";
    for (uint32_t n = 2 + dice_.below(8); n > 0; --n) {
      const Spread spread = any_spread();
      const std::string let = "v" + std::to_string(values_.size());
      out += "  let " + let + " = " + expr(spread, 3) + "\n";
      values_.push_back({let, spread});
    }
    out += output(0, true, of_sum);
    for (uint32_t k = 1; k < 1 + dice_.below(3); ++k) out += output(k, false, false);
    return out + "}\n";
  }

 private:
  template <size_t kCount>
  const char* pick(const char* const (&all)[kCount]) {
    return all[dice_.below(kCount)];
  }
  std::string groups() const { return "groups(" + std::to_string(group_) + ")"; }
  Spread any_spread() {
    const uint32_t n = dice_.below(6);
    return n == 0 ? Spread::once : n == 1 ? Spread::groups : Spread::columns;
  }

  std::string param(const std::string& kind, Spread spread, bool of_sum = false) {
    const std::string name = "p" + std::to_string(values_.size());
    values_.push_back({name, spread});
    const char* const type = pick({"T", "T", "T", "f32", "f16", "bf16", "e4m3", "e5m2"});
    return name + ": " + kind + " " + (of_sum ? "T" : type);
  }

  std::string params(bool of_sum) {
    std::string out = param("row", Spread::columns, of_sum);
    if (dice_.below(2) == 0) out += ", " + param("row", Spread::columns);
    if (dice_.below(2) == 0) out += ", " + param("columns", Spread::columns);
    if (dice_.below(3) == 0) out += ", " + param("scalar", Spread::once);
    if (dice_.below(4) == 0) out += ", " + param("token", Spread::once);
    if (dice_.below(4) == 0) out += ", " + param(groups(), Spread::groups);
    if (dice_.below(8) == 0) out += ", s: token e8m0";
    return out;
  }

  /// `joined`: often one that a step of a sum stores, which are of T.
  std::string output(uint32_t k, bool row, bool joined) {
    const std::string name = "  out o" + std::to_string(k) + ": ";
    const uint32_t n = row ? 2 : dice_.below(3);
    std::string type = pick({"T", "T", "f32", "f16", "bf16", "e4m3", "e5m2", "e8m0"});
    if (joined && dice_.below(2) == 0) type = "T";
    if (n == 0) return name + "token " + type + " = " + expr(Spread::once, 2) + "\n";
    if (n == 1) return name + groups() + " " + type + " = " + expr(Spread::groups, 2) + "\n";
    return name + "row " + type + " = " + expr(Spread::columns, 2) + "\n";
  }

  std::string constant() {
    return pick({"0", "1", "2", "448", "0.5", "1e-5", "1e-10", "3.25", "0.1", "1e30", "columns"});
  }

  std::string leaf(Spread spread) {
    std::vector<const Value*> fitting;
    for (const Value& value : values_) {
      if (value.spread <= spread) fitting.push_back(&value);
    }
    if (fitting.empty() || dice_.below(6) == 0) return constant();
    return fitting[dice_.below(static_cast<uint32_t>(fitting.size()))]->name;
  }

  /// A reduction of columns, if there may be one more.
  std::string reduction(Spread spread, uint32_t depth) {
    if (reductions_ == 6) return leaf(spread);
    ++reductions_;
    const std::string inner =
        values_[0].name + pick({" + ", " - ", " * "}) + expr(Spread::columns, depth - 1);
    if (spread != Spread::once && dice_.below(3) > 0) {
      return std::string(pick({"sum", "max", "min"})) + "(" + inner + " for " +
             std::to_string(group_) + ")";
    }
    return std::string(pick({"sum", "max", "min", "mean", "mean"})) + "(" + inner + ")";
  }

  std::string expr(Spread spread, uint32_t depth) {
    if (depth == 0) return leaf(spread);
    const auto inner = [&] { return expr(spread, depth - 1); };
    switch (dice_.below(13)) {
      case 0:
        return inner() + " + " + inner();
      case 1:
        return "(" + inner() + ") - (" + inner() + ")";
      case 2:
        return "(" + inner() + ") * (" + inner() + ")";
      case 3:
        return "(" + inner() + ") / (" + inner() + ")";
      case 4:
        return "-(" + inner() + ")";
      case 5:
        return "(if " + leaf(spread) + pick({" < ", " <= ", " > ", " >= ", " == ", " != "}) +
               leaf(spread) + " then " + inner() + " else " + inner() + ")";
      case 6:
        return std::string(pick({"T", "T", "f16", "bf16", "e4m3", "e5m2", "e8m0"})) + "(" +
               inner() + ")";
      case 7:
        return std::string(pick({"abs", "sqrt", "rsqrt", "exp", "pow2_up", "pow2_down"})) + "(" +
               inner() + ")";
      case 8:
        return std::string(pick({"min", "max"})) + "(" + inner() + ", " + inner() + ")";
      case 9:
        return "fma(" + inner() + ", " + leaf(spread) + ", " + inner() + ")";
      case 10:
      case 11:
        return reduction(spread, depth);
      default:
        return leaf(spread);
    }
  }

  Dice& dice_;
  uint32_t group_ = 0, reductions_ = 0;
  std::vector<Value> values_;
};

}  // namespace

std::string random_row(Dice& dice, const std::string& name, bool of_sum) {
  return Generator(dice).text(name, of_sum);
}

std::string random_row_program(Dice& dice, const std::string& name) {
  std::string row = random_row(dice, "random", /*of_sum=*/true);
  const Function function = read_one(row);
  const auto indexed = [](const Stored& at, const std::string& called) {
    return called + (at.kind == Kind::columns || at.kind == Kind::scalar ? "" : "[b]");
  };
  std::string externals, results = "output[b]", arguments = "sum[b]";
  std::vector<bool> written(function.params.size());
  for (size_t k = 1; k < function.outputs.size(); ++k) {
    const Stored& result = function.outputs[k];
    std::string called = result.name;
    for (size_t i = 1; i < written.size() && called == result.name; ++i) {
      if (written[i] || form_of(function.params[i]) != form_of(result)) continue;
      written[i] = true;
      called = function.params[i].name;
      row.replace(row.find("out " + result.name + ":") + 4, result.name.size(), called + "_out");
    }
    if (called == result.name) {
      externals += "external " + called + ": " + declared_text(form_of(result)) + " out\n";
    }
    results += ", " + indexed(result, called);
  }
  for (size_t i = 1; i < function.params.size(); ++i) {
    const Stored& param = function.params[i];
    externals += "external " + param.name + ": " + declared_text(form_of(param)) +
                 (written[i] ? " inout\n" : "\n");
    arguments += ", " + indexed(param, param.name);
  }
  return "program " + name + "\nparam R = 2, N = 64, B = 2, T = 64\n" + row + externals +
         R"(collective allreduce(ranks: R, chunks: B, columns: N, then: random, order: ranks)
launch threads: T
rank r in 0..R {
  let others = 0..R except r, after = r + 1 .. R
  buffer inbox[others, B] packets: )" +
         (dice.below(2) == 0 ? "LL16" : "LL8") + R"(, copies: 2
  buffer sum[B]
  channel to[p in others] = memory(p)
  tb b in 0..B {
    for p in others { put_packets to[p].inbox[r, b] <- input[b] }
    reduce_packets sum[b] <- inbox[p, b] for p in 0..r, input[b], inbox[p, b] for p in after
    apply random )" +
         results + " <- " + arguments + "\n  }\n}\n";
}

Function read_one(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  auto functions = read_rows(sources, sources.add("random", text), diagnostics);
  if (!functions || functions->size() != 1) {
    std::fprintf(stderr, "%s%s", text.c_str(), render_text(diagnostics, sources).c_str());
    std::abort();
  }
  return std::move(functions->front());
}

}  // namespace mscclc::rows
