// Random programs compile, survive the ways to text and to JSON and back, and give what they
// promise under random schedules: all passes together, without fusion, within narrow limits, and
// with what each single pass has made as a program of its own.
#include <catch2/catch.hpp>
#include <span>

#include "compiler/compile.h"
#include "executor/simulator/run.h"
#include "ir/print/print.h"
#include "ir/support/result.h"
#include "ir/support/sanitized.h"
#include "plans/format/plan_json.h"
#include "tests/property/generator.h"

namespace mscclc {
namespace {

constexpr uint64_t kPrograms = testing::if_sanitized(200, 2000);

Program unrolled(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  auto program = parse_program(sources, sources.add("random.mscl", text), {}, diagnostics);
  INFO(render_text(diagnostics, sources));
  REQUIRE(program);
  return *std::move(program);
}

Result<Program> compile_text(const std::string& text, uint32_t max_thread_blocks = 0) {
  Sources sources;
  Diagnostics diagnostics;
  PassOptions passes;
  passes.verify_each = true;
  passes.max_thread_blocks = max_thread_blocks;
  auto program = compile(sources, sources.add("random.mscl", text), {}, passes, diagnostics);
  if (!program) return Error{render_text(diagnostics, sources)};
  return *std::move(program);
}

std::string error_of(const Result<Program>& program) {
  return program ? "" : program.error().text();
}

constexpr uint64_t kSizes[] = {0, 4, 52, 400, 5000};

/// What goes wrong in runs of these sizes under the schedule of a seed; "" if nothing does.
std::string run_faults(const Program& program, uint64_t seed, std::span<const uint64_t> sizes) {
  Simulator runner(program);
  for (const uint64_t bytes : sizes) {
    Diagnostics diagnostics;
    const RunResult result =
        runner.run({.bytes = bytes, .iterations = 3, .schedule_seed = seed}, diagnostics);
    if (result.status != RunStatus::right) {
      return std::to_string(bytes) + " bytes: " + render_text(diagnostics, Sources());
    }
  }
  return "";
}

/// One size for a run of its own, another one each time.
std::span<const uint64_t> one_size(uint64_t n) { return std::span(kSizes).subspan(n % 5, 1); }

void run_or_fail(Program& program, const PassOptions& passes) {
  Diagnostics diagnostics;
  const bool done = run_passes(program, passes, diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(done);
}

TEST_CASE("random programs give what they promise") {
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const std::string text = random_program(seed);
    INFO("seed " << seed << "\n" << text);
    const auto program = compile_text(text);
    INFO(error_of(program));
    REQUIRE(program);
    REQUIRE(run_faults(*program, seed, kSizes) == "");
  }
}

TEST_CASE("random programs without fusion, or within narrow limits") {
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    INFO("seed " << seed << "\n" << random_program(seed));
    Program program = unrolled(random_program(seed));
    PassOptions passes;
    if (seed % 2 == 0) {
      program.launch.fuse = false;
    } else {
      passes.limits = {
          .operands = 2, .channels = 1, .semaphores = 1, .unpacks = 1, .one_source_kind = true};
    }
    run_or_fail(program, passes);
    REQUIRE(run_faults(program, seed, one_size(seed / 2)) == "");
  }
}

/// What a pass has made is a program like any other: compiled again, it gives the same. Only
/// instances, and the credits of pipelines, must not be made twice.
TEST_CASE("random programs give the same before and after each pass") {
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    Program program = unrolled(random_program(seed));
    std::string before = print_ir(program);
    PassOptions rest;
    for (const PassInfo& pass : passes()) rest.only.emplace_back(pass.name);
    uint64_t schedule = seed;
    for (const PassInfo& pass : passes()) {
      INFO("seed " << seed << ", " << pass.name << "\n" << before);
      PassOptions one;
      one.only = {std::string(pass.name)};
      one.verify_each = true;
      run_or_fail(program, one);
      if (pass.name == "replicate" || pass.name == "pipeline") std::erase(rest.only, pass.name);
      std::string after = print_ir(program);
      const bool changed = after != before;
      before = std::move(after);
      if (!changed) continue;
      Program again = program;
      again.split = false;
      run_or_fail(again, rest);
      schedule += kPrograms;
      REQUIRE(run_faults(again, schedule, one_size(schedule)) == "");
    }
  }
}

TEST_CASE("random programs that name no block give the same in any number of blocks") {
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const std::string text = random_program(seed);
    if (text.find("  tb ") != std::string::npos) continue;
    const auto most = static_cast<uint32_t>(3 + seed % 4);  // of up to 3 instances
    INFO("seed " << seed << ", " << most << " blocks\n" << text);
    const auto program = compile_text(text, most);
    INFO(error_of(program));
    REQUIRE(program);
    for (const Rank& rank : program->ranks) REQUIRE(rank.blocks <= most);
    REQUIRE(run_faults(*program, seed, one_size(seed)) == "");
  }
}

TEST_CASE("random programs survive text and JSON") {
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    INFO("seed " << seed);
    const auto program = compile_text(random_program(seed));
    INFO(error_of(program));
    REQUIRE(program);
    const std::string ir = print_ir(*program);
    const auto from_text = compile_text(ir);
    INFO(error_of(from_text));
    REQUIRE(from_text);
    REQUIRE(print_ir(*from_text) == ir);

    Diagnostics diagnostics;
    const auto json = write_plan(*program, builtin_targets().front(), diagnostics);
    REQUIRE(json);
    const auto from_json = read_plan(*json, "plan.json", diagnostics);
    REQUIRE(from_json);
    REQUIRE(print_ir(*from_json) == ir);
  }
}

}  // namespace
}  // namespace mscclc
