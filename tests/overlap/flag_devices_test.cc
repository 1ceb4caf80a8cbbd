// Plans with flags on the host device, beside threads that stand for GEMMs: output for output the
// bits of the simulator.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "ir/support/sanitized.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/overlap/beside_gemm.h"
#include "tests/overlap/flag_plans.h"
#include "tests/overlap/gemm_side.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::FlagMemory;
using testing::GemmBy;
using testing::KnownCalls;
using testing::run_threads;

constexpr uint64_t kCalls = testing::if_sanitized(6, 24);

void check_beside_gemm(const Program& program, GemmBy by = GemmBy::thread) {
  const auto plan = std::make_shared<const Program>(program);
  std::vector<KnownCalls> sizes;
  for (const uint64_t bytes : {uint64_t{64} * plan->ranks.size(), uint64_t{70000}, uint64_t{900}}) {
    Diagnostics diagnostics;
    auto known =
        testing::known_calls(*plan, testing::message_for(*plan, bytes),
                             testing::in_place_for(*plan, bytes == 900), kCalls, diagnostics);
    INFO(testing::said_of_flags(diagnostics));
    REQUIRE(known.has_value());
    sizes.push_back(*std::move(known));
  }
  CHECK(run_threads(static_cast<uint32_t>(plan->ranks.size()), [&](Communicator& communicator) {
          return testing::run_beside_gemm(communicator, plan, sizes, by);
        }) == "");
}

TEST_CASE("plans of the library run beside GEMMs on the host device") {
  for (const char* const name : testing::kOverlapPrograms) {
    for (const char* const ranks : {"2", "3"}) {
      INFO(name << " of " << ranks << " ranks");
      check_beside_gemm(testing::flag_plan(testing::overlap_text(name), {{"R", ranks}}));
    }
  }
}

TEST_CASE("plans run beside copies that write the input and raise flags") {
  for (const char* const name : testing::kOverlapPrograms) {
    INFO(name);
    check_beside_gemm(
        testing::flag_plan(testing::of_system_scope(testing::overlap_text(name)), {{"R", "2"}}),
        GemmBy::copies);
  }
}

TEST_CASE("a runner of plans plays the other side in sequence, and sees what was not raised") {
  for (const char* const name : testing::kOverlapPrograms) {
    const auto plan = std::make_shared<const Program>(
        testing::flag_plan(testing::overlap_text(name), {{"R", "2"}}));
    INFO(name);
    CHECK(testing::run_processes(2, [&](Communicator& communicator) -> std::string {
            Diagnostics diagnostics;
            RankRunner runner(
                communicator, plan,
                {.load = {.max_bytes = 4096, .zero_copy = true, .proof = ProofPolicy::skip}});
            if (!runner.load(diagnostics)) return testing::text(diagnostics);
            for (const uint64_t bytes : {4096, 400}) {
              const RankResult result = runner.run({.bytes = testing::message_for(*plan, bytes),
                                                    .in_place = testing::in_place_for(*plan, false),
                                                    .iterations = 3},
                                                   diagnostics);
              if (result.run.status != RunStatus::right) return testing::text(diagnostics);
            }
            return "";
          }) == "");
  }
  Program wrong = testing::flag_plan(testing::overlap_text("allgather_gemm"), {{"R", "2"}});
  wrong.flags[0].raises = 2;
  CHECK(run_threads(2, [&](Communicator& communicator) -> std::string {
          Diagnostics diagnostics;
          RankRunner runner(
              communicator, std::make_shared<const Program>(wrong),
              {.load = {.max_bytes = 4096, .zero_copy = true, .proof = ProofPolicy::skip}});
          if (!runner.load(diagnostics)) return testing::text(diagnostics);
          const RankResult result = runner.run({.bytes = 400, .in_place = false}, diagnostics);
          const std::string said = testing::text(diagnostics);
          const bool found =
              result.run.status != RunStatus::right &&
              said.find("the flags 'ready' were not all raised 2 times in each of 1 calls") !=
                  std::string::npos;
          return found ? "" : "it was not found: " + said;
        }) == "");
}

TEST_CASE("flags are raised several times, have 64 bits, and are of the system's scope") {
  check_beside_gemm(testing::flag_plan(testing::overlap_text("gemm_reducescatter"),
                                       {{"R", "2"}, {"C", "3"}, {"K", "5"}}));
  std::string text = testing::overlap_text("gemm_allreduce");
  text.replace(text.find(", raises: K"), 11, ", raises: K, bits: 64, scope: system");
  check_beside_gemm(testing::flag_plan(text, {{"R", "2"}, {"K", "3"}}));
}

TEST_CASE("blocks await flags and raise others, in instances, too") {
  check_beside_gemm(testing::flag_plan(testing::kThrough));
  check_beside_gemm(testing::flag_plan(testing::kThrough, {{"I", "2"}}));
}

TEST_CASE("words of 32 bits wrap") {
  const auto plan = std::make_shared<const Program>(
      testing::flag_plan(testing::kThrough, {{"N", "1"}, {"K", "1048576"}}));
  constexpr uint64_t kWraps = 4100;  // times 2^20 raises are more than 2^32
  const std::string said = run_threads(2, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto executable = communicator.load(
        plan, {.max_bytes = 64, .zero_copy = true, .proof = ProofPolicy::skip}, diagnostics);
    if (executable == nullptr) return testing::text(diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    FlagMemory flags(*plan);
    uint64_t memory[2] = {};
    for (uint64_t c = 0; c < kWraps; ++c) {
      const BoundCall bound = executable->bind(
          {.bytes = 8, .input = &memory[0], .output = &memory[1], .flags = flags.given()},
          diagnostics);
      if (!bound) return testing::text(diagnostics);
      memory[0] = ~c;
      flags.raise(0, 0, (1u << 20) - 1);
      if (!executable->launch(bound, stream, diagnostics)) return testing::text(diagnostics);
      memory[0] = c;
      flags.raise(0, 0);
      if (!communicator.synchronize(stream, diagnostics)) return testing::text(diagnostics);
      if (memory[1] != c || flags.word(1, 0) != c + 1) return fmt::format("call {}", c);
    }
    communicator.device().destroy_stream(stream);
    return "";
  });
  CHECK(said == "");
}

TEST_CASE("a block that waits for a flag too long says for which, and how often it was raised") {
  const auto plan = std::make_shared<const Program>(testing::flag_plan(
      testing::overlap_text("gemm_reducescatter"), {{"R", "2"}, {"C", "1"}, {"K", "4"}}));
  std::string said[2];
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto executable =
        communicator.load(plan, {.max_bytes = 64, .proof = ProofPolicy::skip}, diagnostics);
    if (executable == nullptr) return testing::text(diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    FlagMemory flags(*plan);
    alignas(16) uint8_t memory[2][64] = {};
    const BoundCall bound = executable->bind(
        {.bytes = 64, .input = memory[0], .output = memory[1], .flags = flags.given()},
        diagnostics);
    if (!bound) return testing::text(diagnostics);
    for (uint32_t c = 0; c < 2; ++c) flags.raise(0, c, communicator.rank() == 0 && c == 1 ? 3 : 4);
    const bool ended = executable->launch(bound, stream, diagnostics) &&
                       communicator.synchronize(stream, diagnostics);
    said[communicator.rank()] = ended ? "it ended" : testing::text(diagnostics);
    communicator.device().destroy_stream(stream);
    return "";
  };
  // Rank 0 is to launch before rank 1 has waited so long for it.
  const auto is_right = [&](int factor) {
    return run_threads(2, body, {testing::kPatience, factor * std::chrono::milliseconds(400)}) ==
               "" &&
           said[0].find("'await tiles[1]'") != std::string::npos;
  };
  CHECK(testing::right_in_longer_times(is_right));
  INFO(said[0]);
  CHECK(
      said[0].find("waits for the flag 'tiles[1]', whose word is 3 and must be 4: in this call it "
                   "was raised 3 of 4 times; the other side raises it when it has written chunk 1 "
                   "of the input") != std::string::npos);
}

}  // namespace
}  // namespace mscclc
