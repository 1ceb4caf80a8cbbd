// Row functions that come with plans: whatever is wrong with them is refused, and in time.
#include "tests/rows/row_plans.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "compiler/rows/library.h"
#include "executor/cpu/dice.h"
#include "ir/print/print.h"
#include "ir/rows/check_row.h"
#include "ir/rows/print_row.h"
#include "ir/support/sanitized.h"
#include "plans/format/plan_json.h"
#include "runtime/choice/proofs/plan_digest.h"
#include "tests/helpers/plans/rehash.h"
#include "tests/rows/random_row.h"

namespace mscclc {
namespace {

using Json = nlohmann::ordered_json;
using rows::Function;
using testing::row_plan;

std::string plan_text(const Program& program) {
  Diagnostics diagnostics;
  return write_plan(program, builtin_targets().front(), diagnostics).value();
}

/// The first error of reading it, or "" if it is read, and then written and read as the same.
std::string read(const Json& document) {
  Diagnostics diagnostics;
  const auto program = read_plan(testing::rehash(document.dump()), "plan.json", diagnostics);
  if (!program) {
    REQUIRE(diagnostics.has_errors());
    return diagnostics.all()[0].message;
  }
  const std::string text = print_ir(*program);
  const auto again = read_plan(plan_text(*program), "again.json", diagnostics);
  REQUIRE(again.has_value());
  CHECK(print_ir(*again) == text);
  return "";
}

TEST_CASE("what the parser makes has no fault, and is printed and read as it is") {
  for (const Function& function : rows::library()) CHECK(rows::fault_of(function) == std::nullopt);
  Dice dice(44);
  for (int i = 0; i < 500; ++i) {
    const Function function = rows::read_one(rows::random_row(dice, "f"));
    INFO(rows::print(function));
    CHECK(rows::fault_of(function) == std::nullopt);
  }
}

/// x, and then `n` values, each the sum of the one before and itself.
Function doubling(uint32_t n) {
  Function f;
  f.name = "f";
  f.params.push_back({.name = "x", .node = 0});
  f.nodes.push_back({.op = rows::Op::param, .spread = rows::Spread::columns});
  for (uint32_t i = 0; i < n; ++i) {
    f.nodes.push_back({.op = rows::Op::add,
                       .spread = rows::Spread::columns,
                       .args = {i, i, rows::kNoNode, rows::kNoNode}});
  }
  f.outputs.push_back({.name = "y", .node = n});
  return f;
}

TEST_CASE("a function whose text would not end is refused") {
  CHECK(rows::fault_of(doubling(1)) == std::nullopt);
  CHECK(rows::fault_of(doubling(2)).value() ==
        "a value without a name is used more than once, or never");
  CHECK(rows::fault_of(doubling(1000)).has_value());
  Function chain = doubling(0);
  for (uint32_t i = 0; i < 100; ++i) {
    chain.nodes.push_back({.op = rows::Op::negate,
                           .spread = rows::Spread::columns,
                           .args = {i, rows::kNoNode, rows::kNoNode, rows::kNoNode}});
  }
  chain.outputs[0].node = 100;
  CHECK(rows::fault_of(chain).value().starts_with("an expression is deeper than"));
}

TEST_CASE("functions that cannot be are refused with their reason") {
  const Json plan = Json::parse(plan_text(row_plan("allreduce_norm", {}, "launch fuse: false\n")));
  CHECK(read(plan) == "");
  const auto changed = [&](const auto& change) {
    Json copy = plan;
    change(copy["mscclc"]);
    return read(copy);
  };
  const auto has = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(changed([](Json& m) { m["rows"][0]["nodes"][4] = {"add", 4, 0}; }), "no value before");
  has(changed([](Json& m) {
        m["rows"][0]["nodes"][0] = {"param", 9};
      }),
      "what does not go together");
  has(changed([](Json& m) { m["rows"][0]["nodes"][0] = {"sorted", 0}; }), "unknown word 'sorted'");
  has(changed([](Json& m) { m["rows"][0]["params"][0][0] = "mean"; }), "a name that is none");
  has(changed([](Json& m) { m["rows"][0]["params"][1][0] = "x"; }), "two of the name 'x'");
  has(changed([](Json& m) { m["rows"][0]["results"].clear(); }), "no result");
  has(changed([](Json& m) { m["rows"].push_back(m["rows"][0]); }), "two row functions");
  has(changed([](Json& m) { m.erase("rows"); }), "no row function 'add_rmsnorm'");
  has(changed([](Json& m) { m.erase("externals"); }), "there is no external of this name");
  has(changed([](Json& m) { m["externals"][0][3] = "in"; }), "goes nowhere");
  has(changed([](Json& m) { m["externals"][1][1] = "row"; }), "not of one kind and type");
  has(changed([](Json& m) { m["externals"][2][4] = "sharded"; }),
      "cannot be scalar f32 in sharded");
  has(changed([](Json& m) { m["contract"].erase("columns"); }), "'columns: ...' and 'then: ...'");
  has(changed([](Json& m) { m["contract"]["columns"] = 4000000; }), "a row has 1 to 1048576");
  has(changed([](Json& m) { m["ranks"][0].erase("applied"); }), "what it applies is missing");
  has(changed([](Json& m) { m["ranks"][0]["applied"][0][1] = 7; }), "what it applies is missing");
  has(changed([](Json& m) { m["ranks"][0]["applied"][0][2] = 5; }), "of a part that has 2");
  has(changed([](Json& m) { m["ranks"][0]["applied"][1][2] = 0; }), "not equally many");
  has(changed([](Json& m) { m["ranks"][0]["applied"][0][4] = -9; }), "external of a row function");
}

TEST_CASE("what a sum is handed to is refused with its reason") {
  const Json plan = Json::parse(plan_text(row_plan("allreduce_norm", {})));
  const auto changed = [&](size_t at, int64_t value) {
    Json copy = plan;
    copy["mscclc"]["ranks"][0]["applied"][0][at] = value;
    return read(copy);
  };
  CHECK(plan["mscclc"]["ranks"][0]["applied"][0] == Json({2, 0, 0, 2, -1, 0, 0, -1, -2, -3}));
  CHECK(changed(0, 0).find("begins with no op that applies a row function") != std::string::npos);
  CHECK(changed(1, 1).find("what it applies is missing") != std::string::npos);
  CHECK(changed(2, 1).find("not equally many") != std::string::npos);
  CHECK(changed(5, 1).find("an operand or external of a row function is missing") !=
        std::string::npos);
  CHECK(changed(6, 1).find("an operand or external of a row function is missing") !=
        std::string::npos);
  CHECK(changed(6, -1).find("an operand stands for no result, or for several") !=
        std::string::npos);
  CHECK(changed(7, 0).find("an operand stands for no result, or for several") != std::string::npos);
}

TEST_CASE("a function that would take too much memory for a row is refused") {
  Json plan = Json::parse(plan_text(row_plan("allreduce_norm", {})));
  Json& m = plan["mscclc"];
  m["contract"]["columns"] = 1 << 20;
  CHECK(read(plan) == "");  // wide, but few values
  const size_t nodes = m["rows"][0]["nodes"].size();
  Json& function = m["rows"][0];
  for (size_t i = 0; i < 64; ++i) {
    function["nodes"].push_back({"negate", i == 0 ? 0 : nodes + i - 1});
    function["lets"].push_back({"v" + std::to_string(i), nodes + i});
  }
  const std::string text = read(plan);
  INFO(text);
  CHECK(text.find("'add_rmsnorm' computes ") == 0);
  CHECK(text.find("of at most ") != std::string::npos);
}

/// Every value of the document, from the inside out.
void collect(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (!value.is_structured()) return;
  for (Json& inner : value) collect(inner, all);
}

TEST_CASE("plans of rows with random damage are read or refused") {
  for (const char* const name : {"allreduce_norm", "reducescatter_quantize"}) {
    const Json plan = Json::parse(plan_text(row_plan(name, {})));
    Dice dice(7);
    for (int i = 0; i < testing::if_sanitized(300, 4000); ++i) {
      Json copy = plan;
      std::vector<Json*> all;
      Json& m = copy["mscclc"];
      for (const char* const key : {"rows", "externals", "contract"}) collect(m[key], all);
      collect(m["ranks"][0]["applied"], all);
      Json& victim = *all[dice.below(all.size())];
      const Json values[] = {
          0,   1,   2,  -1,    -2,        65,      4294967295u,   "row",
          "T", "x", "", "add", "columns", nullptr, Json::array(), *all[dice.below(all.size())]};
      victim = Json(values[dice.below(std::size(values))]);
      read(copy);
    }
  }
}

TEST_CASE("a plan's digest is of its functions and externals, too") {
  Program program = row_plan("allreduce_norm", {});
  Diagnostics diagnostics;
  const auto digest = [&] { return plan_digest(program, diagnostics).value(); };
  const auto before = digest();
  program.functions[0].rounding = rows::Rounding::once;
  const auto once = digest();
  CHECK(before != once);
  program.externals[1].holding = rows::Holding::replicated;
  CHECK(once != digest());
}

}  // namespace
}  // namespace mscclc
