// Random programs compile, survive the ways to text and to JSON and back, and give what they
// promise under random schedules, with and without fusion.
#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "executor/host/run.h"
#include "ir/print.h"
#include "plans/plan_json.h"
#include "tests/property/generator.h"

namespace mscclc {
namespace {

constexpr uint64_t kPrograms = 2000;

std::optional<Program> compile_text(const std::string& text, std::string& errors,
                                    uint32_t max_thread_blocks = 0) {
  Sources sources;
  Diagnostics diagnostics;
  PipelineOptions passes;
  passes.verify_each = true;
  passes.max_thread_blocks = max_thread_blocks;
  auto program = compile(sources, sources.add("random.mscl", text), {}, passes, diagnostics);
  errors = render_text(diagnostics, sources);
  return program;
}

std::string run_faults(const Program& program, uint64_t seed) {
  static const uint64_t kSizes[] = {0, 4, 52, 400, 5000};
  HostRunner runner(program);
  for (const uint64_t bytes : kSizes) {
    Diagnostics diagnostics;
    const RunResult result =
        runner.run({.bytes = bytes, .iterations = 3, .schedule_seed = seed}, diagnostics);
    if (result.status != RunStatus::right) {
      return std::to_string(bytes) + " bytes: " + render_text(diagnostics, Sources());
    }
  }
  return "";
}

std::string with_fusion_off(std::string text) {
  const std::string launch = "launch     ";
  return text.insert(text.find(launch) + launch.size(), "fuse: false, ");
}

TEST_CASE("random programs give what they promise") {
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const std::string text = random_program(seed);
    for (const std::string& variant : {text, with_fusion_off(text)}) {
      INFO("seed " << seed << "\n" << variant);
      std::string errors;
      const auto program = compile_text(variant, errors);
      REQUIRE(program);
      REQUIRE(run_faults(*program, seed) == "");
    }
  }
}

TEST_CASE("random programs that name no block give the same in any number of blocks") {
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const std::string text = random_program(seed);
    if (text.find("  tb ") != std::string::npos) continue;
    const auto most = static_cast<uint32_t>(3 + seed % 4);  // of up to 3 instances
    INFO("seed " << seed << ", " << most << " blocks\n" << text);
    std::string errors;
    const auto program = compile_text(text, errors, most);
    INFO(errors);
    REQUIRE(program);
    for (const Rank& rank : program->ranks) REQUIRE(rank.blocks <= most);
    REQUIRE(run_faults(*program, seed) == "");
  }
}

TEST_CASE("random programs survive text and JSON") {
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    INFO("seed " << seed);
    std::string errors;
    const auto program = compile_text(random_program(seed), errors);
    REQUIRE(program);
    const std::string ir = print_ir(*program);
    const auto from_text = compile_text(ir, errors);
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
