// Programs with flags: compiled, proved, written as plans and read again, and run on the simulator
// against another side that is as hostile as they allow. Wrong ones are refused, and run wrong.
#include <catch2/catch.hpp>
#include <string>

#include "executor/simulator/run.h"
#include "ir/print/print.h"
#include "ir/support/sanitized.h"
#include "passes/prove/prove.h"
#include "plans/format/plan_json.h"
#include "tests/overlap/flag_plans.h"

namespace mscclc {
namespace {

using testing::flag_plan;
using testing::FlagDefines;
using testing::kOverlapPrograms;
using testing::overlap_text;
using testing::said_of_flags;

constexpr uint64_t kSeeds = testing::if_sanitized(2, 8);
RunStatus run(const Program& program, RunSpec spec, std::string& said) {
  Diagnostics diagnostics;
  const RunResult result = simulate(program, spec, diagnostics);
  said = said_of_flags(diagnostics);
  return result.status;
}

/// Runs with and without an adversary, under the schedules of some seeds.
void check_runs(const Program& program) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    RunSpec spec{.bytes = testing::message_for(program, seed % 4 == 3 ? 16 : 1000 + 52 * seed),
                 .in_place = testing::in_place_for(program, seed % 2 == 1),
                 .iterations = 3,
                 .schedule_seed = seed};
    for (const bool adversary : {false, true}) {
      if (adversary) spec.adversary = Adversary{.strands = 2 + static_cast<uint32_t>(seed % 2)};
      std::string said;
      const RunStatus status = run(program, spec, said);
      INFO("seed " << seed << (adversary ? ", adversary" : "") << ": " << said);
      CHECK(status == RunStatus::right);
    }
  }
}

void check_plan(const Program& program) {
  Diagnostics diagnostics;
  const auto json = write_plan(program, builtin_targets().front(), diagnostics);
  INFO(said_of_flags(diagnostics));
  REQUIRE(json.has_value());
  const auto read = read_plan(*json, "plan.json", diagnostics);
  INFO(said_of_flags(diagnostics));
  REQUIRE(read.has_value());
  CHECK(print_ir(*read) == print_ir(program));
}

std::string verdict(const Program& program) {
  Diagnostics diagnostics;
  return prove(program, diagnostics).proved ? "proved" : said_of_flags(diagnostics);
}

TEST_CASE("programs with flags are proved, and right whatever the other side does") {
  for (const char* const name : kOverlapPrograms) {
    for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
      DYNAMIC_SECTION(name << " of " << ranks << " ranks") {
        const Program program = flag_plan(overlap_text(name), {{"R", std::to_string(ranks)}});
        CHECK(verdict(program) == "proved");
        check_plan(program);
        if (ranks == 2 || ranks == 3) check_runs(program);
      }
    }
  }
}

TEST_CASE("no pass puts flags together that come at different times") {
  for (const char* const name : kOverlapPrograms) {
    INFO(name);
    const Program program = flag_plan(overlap_text(name), {{"R", "4"}});
    uint32_t joined = 0;
    for (const Op& op : program.ranks[1].ops) {
      if (info(op.kind).has_flags() && op.dsts > 1) ++joined;
    }
    // A rank's own part is there as a whole where a copy has put it.
    CHECK(joined <= (std::string(name).find("_gemm_copy_engine") != std::string::npos ? 1 : 0));
  }
}

TEST_CASE("a GEMM that counts tiles raises a flag several times") {
  for (const char* const name : {"gemm_reducescatter", "gemm_allreduce"}) {
    const Program program = flag_plan(overlap_text(name), {{"R", "3"}, {"K", "5"}, {"C", "1"}});
    CHECK(program.flags[0].raises == 5);
    CHECK(verdict(program) == "proved");
    check_runs(program);
  }
}

TEST_CASE("instances and groups wait for flags, and raise them together") {
  for (const char* const name : {"allgather_gemm", "gemm_allreduce"}) {
    for (const std::string policy : {"interleaved", "blocked"}) {
      std::string text = overlap_text(name);
      text.replace(text.find("instances: I"), 12, "instances: I, policy: " + policy);
      const Program program = flag_plan(text, {{"R", "3"}, {"C", "1"}, {"I", "2"}});
      CHECK(program.flags[0].raises == (program.flags[0].of_output ? 2 : 1));
      CHECK(verdict(program) == "proved");
      check_plan(program);
      check_runs(program);
    }
  }
}

TEST_CASE("IR text with flags is read as the same program") {
  const Program program = flag_plan(
      "external flags ready[2] of: output, bits: 64, scope: system, tiles: rising\n"
      "external flags tiles[4] of: input, raises: 3, after: ready\n"
      "collective sendrecv(ranks: 2, shift: 0, chunks: 4, inplace: false)\n"
      "rank r in 0..2 {\n"
      "  tb 0 { notify ready[0], ready[1] }\n"
      "  tb 1 { await tiles[c] for c in 0..4 }\n"
      "}\n");
  const std::string text = print_ir(program);
  CHECK(text.find("external   flags ready[2] of: output, bits: 64, scope: system, tiles: rising\n"
                  "external   flags tiles[4] of: input, raises: 3, after: ready\n") !=
        std::string::npos);
  CHECK(text.find("notify ready[0], ready[1]") != std::string::npos);
  CHECK(print_ir(flag_plan(text)) == text);
  check_plan(program);
}

// ---- wrong programs ----

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

const FlagDefines kTwo = {{"R", "2"}, {"C", "1"}};

/// What the prover says of a program; the simulator shows it, too.
std::string refused(const std::string& text, RunStatus shown, const FlagDefines& defines = {}) {
  const Program program = flag_plan(text, defines);
  std::string said;
  RunStatus found = RunStatus::right;
  for (uint64_t seed = 0; seed < 40 && found == RunStatus::right; ++seed) {
    found = run(program, {.bytes = 256, .iterations = 2, .schedule_seed = seed}, said);
  }
  INFO(said);
  CHECK(found == shown);
  return verdict(program);
}

TEST_CASE("what is read before its await is refused, with its place and the remedy") {
  const std::string text =
      replaced(overlap_text("gemm_reducescatter"), "      await tiles[p * C + c]\n", "");
  CHECK(refused(text, RunStatus::wrong, kTwo) ==
        "race: race at input[0] of rank 1: nothing orders two accesses\n"
        "- when r = 1, c = 0, p = 0\n"
        "- in 'put data[0, 0].partial[1] <- input[0]' (rank 1, tb 0)\n"
        "- the other side of 'tiles[0]' may still be writing it\n"
        "- 'put data[0, 0].partial[1] <- input[0]' reads it (rank 1, tb 0)\n"
        "- 'await tiles[0]' before it\n");
}

TEST_CASE("what is notified before it is there is refused, with its place and the remedy") {
  const std::string text = replaced(overlap_text("allgather_gemm"),
                                    "      wait data[c, p]\n      notify ready[p * C + c]\n",
                                    "      notify ready[p * C + c]\n      wait data[c, p]\n");
  const std::string said = refused(text, RunStatus::wrong, kTwo);
  CHECK(said.find("race at output[1] of rank 0: nothing orders two accesses") != std::string::npos);
  CHECK(said.find("the other side of 'ready[1]', once notified, reads it") != std::string::npos);
  CHECK(said.find("'notify ready[1]' must come after all that is written there in this call") !=
        std::string::npos);
}

TEST_CASE("flags that are not notified, or too often, are refused") {
  const std::string text = overlap_text("allgather_gemm");
  CHECK(
      refused(replaced(text, "    notify ready[r * C + c]\n", ""), RunStatus::hung, kTwo)
          .starts_with("flag-count: in each call 'ready[0]' of rank 0 is notified 0 times, and the "
                       "other side waits for 1\n"));
  const std::string twice = replaced(text, "    notify ready[r * C + c]\n",
                                     "    notify ready[r * C + c]\n    notify ready[r * C + c]\n");
  Diagnostics diagnostics;
  CHECK_FALSE(prove(flag_plan(twice, kTwo), diagnostics).proved);
  CHECK(diagnostics.all()[0].span.valid());  // where the array is declared
  CHECK(
      verdict(flag_plan(twice, kTwo))
          .starts_with("flag-count: in each call 'ready[0]' of rank 0 is notified 2 times, and the "
                       "other side waits for 1\n"));
}

/// One rank's input goes to its own output; the other side may wait for the output before it has
/// written the next of the input.
std::string chained(const std::string& body, const std::string& after) {
  return "external flags ready[2] of: output\nexternal flags tiles[2] of: input" + after +
         "\ncollective sendrecv(ranks: 2, shift: 0, chunks: 2, inplace: false)\n"
         "rank r in 0..2 {\n  tb 0 {\n" +
         body + "  }\n}\n";
}
const std::string kInTurn =
    "    for c in 0..2 {\n      await tiles[c]\n      copy output[c] <- input[c]\n"
    "      notify ready[c]\n    }\n";
const std::string kTogether =
    "    await tiles[0], tiles[1]\n    copy output <- input\n    notify ready[0], ready[1]\n";

TEST_CASE("the other side may wait for flags below its own, or for what is declared") {
  const Program right = flag_plan(chained(kInTurn, ""));
  CHECK(verdict(right) == "proved");
  check_runs(right);
  CHECK(refused(chained(kTogether, ""), RunStatus::hung) ==
        "flag-stuck: 'await tiles[1]' waits forever: the other side may wait for 'ready[0]' first\n"
        "- when r = 0\n- in 'await tiles[0], tiles[1]' (rank 0, tb 0)\n"
        "- it raises flag 1 when it has seen flags of the output below 1, or before\n"
        "- let the plan 'notify ready[0]' without waiting for 'tiles[1]', in another block say\n");
  CHECK(refused(chained(kInTurn, ", after: ready"), RunStatus::hung) ==
        "flag-stuck: 'await tiles[0]' waits forever: the other side may wait for 'ready[0]' first\n"
        "- when r = 0, c = 0\n- in 'await tiles[0]' (rank 0, tb 0)\n"
        "- 'tiles' is declared 'after: ready'\n"
        "- let the plan 'notify ready[0]' without waiting for 'tiles[0]', in another block say\n");
}

TEST_CASE("a plan that goes through flags in another order than the other side is warned of") {
  const std::string text =
      replaced(overlap_text("gemm_reducescatter"), "[(r + i) % R for i in 1..R]",
               "[(r + R - i) % R for i in 1..R]");
  Diagnostics diagnostics;
  REQUIRE(flag_plan(text, {{"R", "4"}, {"C", "1"}}, diagnostics).has_value());
  CHECK(said_of_flags(diagnostics) ==
        "flag-order: 'await tiles[2]' in tb 0 of rank 0 (r = 0, c = 0, p = 2) comes after "
        "'tiles[3]', which the other side raises later\n"
        "- 'tiles' says 'tiles: own_last': go through its flags in that order, or say what the "
        "other side does\n");
}

std::string errors_of(const std::string& flags, const std::string& body) {
  Diagnostics diagnostics;
  const auto program =
      flag_plan(flags +
                    "\ncollective sendrecv(ranks: 2, shift: 0, chunks: 4, inplace: "
                    "false)\nrank r in 0..2 {\n" +
                    body + "\n}\n",
                {}, diagnostics);
  CHECK_FALSE(program.has_value());
  return diagnostics.all().empty()
             ? ""
             : diagnostics.all()[0].code + ": " + diagnostics.all()[0].message;
}

TEST_CASE("flags are what they can be, and stand where they can") {
  const std::string in = "external flags f[4] of: input", out = "external flags f[4] of: output";
  CHECK(
      errors_of("external flags f[3] of: input", "tb 0 { await f[0] }") ==
      "flags: the array 'f' has 3 flags for the 4 chunks of the input at rank 0; each flag is for "
      "equally many");
  CHECK(errors_of("external flags f[4] of: scratch", "tb 0 { await f[0] }") ==
        "option-value: 'of' is 'input' or 'output', not 'scratch'");
  CHECK(errors_of("external flags f[4] raises: 2", "tb 0 { await f[0] }") ==
        "missing-option: flags need 'of: input' or 'of: output': what they are for");
  CHECK(errors_of(in + ", bits: 16", "tb 0 { await f[0] }") ==
        "flags: the array of flags 'f' has words that are not of 32 or 64 bits");
  CHECK(errors_of(in + ", scope: rack", "tb 0 { await f[0] }") ==
        "option-value: 'scope' is 'gpu' or 'system', not 'rack'");
  CHECK(errors_of(in + "\nexternal flags g[4] of: input", "tb 0 { await f[0], g[0] }") ==
        "flags: a second array of flags of the input: 'g'");
  CHECK(errors_of(in, "tb 0 { await f[4] }") ==
        "no-such-flag: 'f' has no flag 4 (they go from 0 to 3)");
  CHECK(errors_of(in, "tb 0 { notify f[0] }") ==
        "op-flags: 'f[0]' is of the input: the other side raises it, and the plan awaits it");
  CHECK(errors_of(out, "tb 0 { await f[0] }") ==
        "op-flags: 'f[0]' is of the output: the plan notifies it, and the other side waits");
  CHECK(errors_of(in, "await f[0]") == "nesting: 'await' outside 'tb' and 'group'");
  CHECK(
      errors_of(in, "tb 0 { pipeline unit: 4KiB { await f[0] } }") ==
      "op-flags: 'await' inside a pipeline, whose rounds move parts of each region; put it before "
      "or after");
  CHECK(errors_of(in, "tb 0 { await input[0] }") ==
        "wrong-kind: 'input' is a buffer; expected an array of flags");
  CHECK(errors_of(in, "tb 0 { copy output[0] <- f[0] }") ==
        "wrong-kind: 'f' is an array of flags; expected a buffer");
}

}  // namespace
}  // namespace mscclc
