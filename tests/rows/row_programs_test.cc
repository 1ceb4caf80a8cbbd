// Programs with row functions: compiled, proved, written as plans and read again, and run on the
// simulator against what evaluate() makes of exact sums, bit for bit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "compiler/compile.h"
#include "executor/cost/explanation.h"
#include "executor/simulator/run.h"
#include "ir/print/print.h"
#include "ir/support/read_file.h"
#include "ir/support/sanitized.h"
#include "passes/prove/prove.h"
#include "plans/format/machines/machine.h"
#include "plans/format/plan_json.h"
#include "plans/format/row_table.h"

namespace mscclc {
namespace {

constexpr uint64_t kSeeds = testing::if_sanitized(2, 6);
const std::string kFolder = "tests/rows/programs/";

std::string text_of(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity == Severity::error) text += d.code + ": " + d.message + "\n";
    for (const Note& note : d.notes) text += "- " + note.text + "\n";
  }
  return text;
}

using Defines = std::vector<std::pair<std::string, std::string>>;

std::optional<Program> try_compile(const std::string& text, const Defines& defines,
                                   Diagnostics& diagnostics) {
  Sources sources;
  FrontEndOptions options;
  options.defines = defines;
  options.read_file = [](const std::string& path) { return read_file(path); };
  return compile(sources, sources.add(kFolder + "a.mscl", text), options, {}, diagnostics);
}

Program compiled(const std::string& text, const Defines& defines) {
  Diagnostics diagnostics;
  std::optional<Program> program = try_compile(text, defines, diagnostics);
  INFO(text_of(diagnostics));
  REQUIRE(program.has_value());
  return *std::move(program);
}

Program compiled_file(const std::string& name, const Defines& defines) {
  return compiled(read_file(kFolder + name + ".mscl").value(), defines);
}

/// Runs with and without an adversary, in whatever place, type and schedule the seed says.
void check_runs(const Program& program) {
  const Dtype dtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Dtype dtype = dtypes[seed % 3];
    const uint64_t rows = seed % 4 == 0 ? 0 : seed * 7 % 19;
    RunSpec spec{.bytes = rows * program.granule(dtype) * program.contract.ranks,
                 .dtype = dtype,
                 .op = seed % 2 == 0 ? ReduceOp::sum : ReduceOp::avg,
                 .in_place = seed % 3 == 1,
                 .iterations = 3,
                 .schedule_seed = seed};
    for (const bool adversary : {false, true}) {
      if (adversary) spec.adversary = Adversary{.strands = 2 + static_cast<uint32_t>(seed % 2)};
      Diagnostics diagnostics;
      const RunResult result = simulate(program, spec, diagnostics);
      INFO("seed " << seed << ": " << text_of(diagnostics));
      CHECK(result.status == RunStatus::right);
      CHECK(result.wrong == 0);
    }
  }
}

void check_plan(const Program& program) {
  Diagnostics diagnostics;
  const auto json = write_plan(program, builtin_targets().front(), diagnostics);
  INFO(text_of(diagnostics));
  REQUIRE(json.has_value());
  const auto read = read_plan(*json, "plan.json", diagnostics);
  INFO(text_of(diagnostics));
  REQUIRE(read.has_value());
  CHECK(print_ir(*read) == print_ir(program));
}

TEST_CASE("programs with row functions are proved, and give what evaluate() says") {
  for (const char* const name : {"allreduce_norm", "allreduce_owner", "reducescatter_quantize"}) {
    for (const Defines& defines :
         {Defines{{"R", "2"}, {"N", "64"}}, Defines{{"R", "3"}, {"N", "40"}},
          Defines{{"R", "5"}, {"N", "2880"}}}) {
      DYNAMIC_SECTION(name << " of " << defines[0].second << " ranks") {
        const Program program = compiled_file(name, defines);
        Diagnostics diagnostics;
        const Proof proof = prove(program, diagnostics);
        INFO(text_of(diagnostics));
        CHECK(proof.proved);
        check_plan(program);
        if (defines[1].second != "2880" || !testing::kSanitized) check_runs(program);
      }
    }
  }
}

TEST_CASE("instances and groups cut between rows") {
  const std::string text = read_file(kFolder + "allreduce_owner.mscl").value();
  for (const std::string launch : {"instances: 3", "instances: 2, policy: blocked"}) {
    const Program program = compiled(text + "launch " + launch + "\n", {{"R", "3"}, {"B", "3"}});
    Diagnostics diagnostics;
    CHECK(prove(program, diagnostics).proved);
    INFO(text_of(diagnostics));
    check_plan(program);
    check_runs(program);
  }
}

TEST_CASE("IR text with row functions is read as the same program") {
  const Program program = compiled_file("allreduce_norm", {});
  const std::string text = print_ir(program);
  CHECK(print_ir(compiled(text, {})) == text);
}

std::string verdict(const std::string& text) {
  const Program program = compiled(text, {});
  Diagnostics diagnostics;
  return prove(program, diagnostics).proved ? "proved" : text_of(diagnostics);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("a function of a part of the sum is refused, and run with wrong results") {
  const std::string wrong = replaced(
      read_file(kFolder + "allreduce_owner.mscl").value(),
      "reduce sum[0] <- partial[p] for p in 0..r, input[r], partial[p] for p in r + 1 .. R",
      "copy sum[0] <- input[r]");
  CHECK(verdict(wrong).find("'add_rmsnorm' is applied to a sum that lacks input[1] of rank 0") !=
        std::string::npos);
  Diagnostics diagnostics;
  CHECK(simulate(compiled(wrong, {}), {.bytes = 1 << 12}, diagnostics).status == RunStatus::wrong);
}

TEST_CASE("a function of rows takes time for its rows, externals and reductions, as predicted") {
  const auto us = [](const std::string& value, uint64_t rows) {
    const Program program =
        compiled("program a\nrow f(x: row T, residual: row T) {\n  out y: row T = " + value +
                     "\n}\nexternal residual: row T\n"
                     "collective allreduce(ranks: 2, columns: 64, then: f)\nrank r in 0..2 {\n"
                     "  buffer inbox[1] packets: LL16, copies: 2\n  buffer sum[1]\n"
                     "  channel ch = memory(1 - r)\n  put_packets ch.inbox[0] <- input[0]\n"
                     "  reduce_packets sum[0] <- input[0], inbox[0]\n"
                     "  apply f output[0] <- sum[0], residual[0]\n}\n",
                 {});
    Diagnostics diagnostics;
    const Machine machine = find_machine("2xH200", diagnostics).value();
    const Call call = cost::call_of(program, rows * 256 + 255, Dtype::f32);
    CHECK(call.part_bytes == rows * 256);
    const auto found = cost::explain(program, call, machine, diagnostics);
    INFO(text_of(diagnostics));
    REQUIRE(found);
    return found->us;
  };
  const double none = us("T(x) + residual", 8), one = us("T(x) + sum(residual)", 8);
  CHECK(one > none);
  CHECK(us("T(x) + sum(residual) + max(residual)", 8) - one == Approx(one - none));
  CHECK(us("T(x) + sum(residual)", 16) - us("T(x) + residual", 16) == Approx(2 * (one - none)));
}

TEST_CASE("rows that lie in scratch alone are as long as those that they are made of") {
  const std::string owner =
      replaced(read_file("plans/rows/allreduce_bias_owner.mscl").value(), "\"functions.mscl\"",
               "\"../../../plans/rows/functions.mscl\"");
  const std::string scratch =
      replaced(replaced(replaced(owner, "buffer sum[B]", "buffer sum[B]\n  buffer made[B]"),
                        "apply add_bias output[r, b]", "apply add_bias made[b]"),
               "<- output[r, b] }", "<- made[b] }\n    copy output[r, b] <- made[b]");
  for (const std::string& text :
       {scratch, replaced(scratch, "threads: T", "threads: T, fuse: false")}) {
    const Program program = compiled(text, {{"R", "3"}, {"N", "64"}, {"B", "2"}});
    Diagnostics diagnostics;
    CHECK(prove(program, diagnostics).proved);
    INFO(text_of(diagnostics));
    check_plan(program);
    check_runs(program);
  }
  // Other rows than those of the sum, which may be fewer.
  CHECK(verdict(replaced(scratch, "copy output[r, b] <- made[b]",
                         "copy output[r, b] <- made[B - 1 - b]")) != "proved");
}

TEST_CASE("what ranks have of their own stands for no other rank's") {
  const std::string text = read_file(kFolder + "allreduce_owner.mscl").value();
  const std::string local = replaced(text, "weight: columns T replicated", "weight: columns T");
  CHECK(verdict(local).find("'weight' of 'add_rmsnorm' is not what this rank's caller gives") !=
        std::string::npos);
  Diagnostics diagnostics;
  CHECK(simulate(compiled(local, {}), {.bytes = 1 << 12}, diagnostics).status == RunStatus::wrong);
}

/// What an entry picks for a call, with few thread blocks.
std::optional<Program> picked(const RowEntry& entry, const RowCall& call,
                              Diagnostics& diagnostics) {
  const std::string text = read_file("plans/rows/" + entry.program + ".mscl").value();
  Defines defines = entry.defines(call);
  for (auto& [key, value] : defines) {
    if (key == "B") value = "2";
  }
  return try_compile(replaced(text, "\"functions.mscl\"", "\"../../../plans/rows/functions.mscl\""),
                     defines, diagnostics);
}

TEST_CASE("a program of the rows' library runs with the columns that its table says, and no less") {
  for (const RowEntry& entry : builtin_row_table().entries()) {
    for (const uint32_t columns : {8, 16}) {
      const RowCall call{entry.name, 2, columns, 4, Dtype::bf16};
      Diagnostics diagnostics;
      const auto program = picked(entry, call, diagnostics);
      INFO(entry.name << ' ' << entry.program << '\n' << text_of(diagnostics));
      CHECK(program.has_value() == (columns % entry.columns == 0));
      if (!program) continue;
      const RunSpec spec{.bytes = call.rows * call.row_bytes(), .dtype = call.dtype};
      CHECK(simulate(*program, spec, diagnostics).status == RunStatus::right);
    }
  }
}

TEST_CASE("sums of the rows' library keep what its table says, rounded once") {
  for (const RowEntry& entry : builtin_row_table().entries()) {
    Diagnostics diagnostics;
    const uint32_t ranks = std::min(entry.max_ranks, 5u);
    const auto program = picked(entry, {entry.name, ranks, 64, 1, Dtype::bf16}, diagnostics);
    REQUIRE(program);
    const Proof proof = prove(*program, diagnostics);
    INFO(entry.program << '\n' << text_of(diagnostics));
    CHECK(proof.proved);
    CHECK(proof.orders.keep(RowTable::kOrder));
    CHECK(proof.rounding == Rounding::once);
  }
}

TEST_CASE("calls that rows do not go with are refused") {
  const Program program = compiled_file("allreduce_norm", {{"N", "2884"}});
  const auto said = [&](Dtype dtype) {
    Diagnostics diagnostics;
    CHECK(simulate(program, {.bytes = 1 << 16, .dtype = dtype}, diagnostics).status ==
          RunStatus::refused);
    return text_of(diagnostics);
  };
  CHECK(said(Dtype::bf16) ==
        "row-call: rows of 2884 bf16 are no multiple of 16 bytes; 2880 columns are served, and "
        "2888\n");
  CHECK(said(Dtype::i32) ==
        "row-call: row functions are computed of f32, f16 and bf16, not of 'i32'\n");
}

}  // namespace
}  // namespace mscclc
