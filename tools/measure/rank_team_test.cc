// Ranks that time calls, on the host device: what they do with calls that are right and wrong.
// Times themselves are not looked at.
#include "tools/measure/rank_team.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "compiler/compile.h"

namespace mscclc {
namespace {

std::shared_ptr<const Program> compiled(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("test.mscl", text);
  auto program = compile(sources, file, {}, {}, diagnostics);
  INFO(render_text(diagnostics, sources));
  REQUIRE(program);
  return std::make_shared<const Program>(*std::move(program));
}

const std::string kShift = R"(program shift
collective sendrecv(ranks: 2, shift: 1)
rank r in 0..2 {
  buffer s[1] packets: LL16, copies: 2
  channel ch = memory(1 - r)
  tb 0 {
    put_packets ch.s[0] <- input
    unpack_packets output <- s[0]
  }
  tb 1 {
    signal ch relaxed
    wait ch relaxed
  }
}
)";

}  // namespace

TEST_CASE("a team times plans one after the other") {
  Diagnostics diagnostics;
  const auto team =
      RankTeam::start({.batches = 2, .batch = std::chrono::microseconds(1)}, diagnostics);
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(team != nullptr);
  CHECK(team->ranks() == 2);
  CHECK(team->links() == LinkKind::own);
  CHECK(team->device() == "host");
  const auto plan = compiled(kShift);
  for (const uint64_t bytes : {uint64_t{16}, uint64_t{4096}}) {
    const auto taken = team->time({.plan = plan, .bytes = bytes}, diagnostics);
    INFO(render_text(diagnostics, Sources{}));
    REQUIRE(taken);
    CHECK(taken->wrong == 0);
    CHECK(taken->ns > 0);
    CHECK(taken->spread >= 0);
  }
  CHECK_FALSE(team->broken());
}

TEST_CASE("a call that cannot be made is reported, and others go on") {
  Diagnostics diagnostics;
  const auto team =
      RankTeam::start({.batches = 1, .batch = std::chrono::microseconds(1)}, diagnostics);
  REQUIRE(team != nullptr);
  const auto three = compiled(R"(program three
collective custom(ranks: 3, input: 1, output: 1)
ensure output[0] at q = input[0] at q for q in 0..3
rank r in 0..3 { tb 0 { copy output <- input } }
)");
  Diagnostics refused;
  CHECK_FALSE(team->time({.plan = three, .bytes = 64}, refused));
  REQUIRE(refused.has_errors());
  CHECK(refused.all().front().code == "wrong-size");
  CHECK_FALSE(team->broken());
  const auto taken = team->time({.plan = compiled(kShift), .bytes = 64}, diagnostics);
  REQUIRE(taken);
  CHECK(taken->wrong == 0);
}

TEST_CASE("NCCL does what a plan would do, and is checked like it") {
  ::setenv("MSCCLC_NCCL", "tests/fakes/nccl/22809/libnccl.so.2", 1);
  Diagnostics diagnostics;
  const auto team = RankTeam::start(
      {.batches = 2, .batch = std::chrono::microseconds(1), .nccl = true}, diagnostics);
  ::unsetenv("MSCCLC_NCCL");
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(team != nullptr);
  if (team->nccl().empty()) FAIL(team->why_no_nccl());
  CHECK(team->nccl().starts_with("NCCL 2.28.9 ("));
  const auto plan = compiled(kShift);
  const auto taken = team->time({.plan = plan, .bytes = 4096, .nccl = true}, diagnostics);
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(taken);
  CHECK(taken->wrong == 0);
  CHECK(taken->ns > 0);
  Diagnostics refused;
  const auto own = compiled(R"(program own
collective custom(ranks: 2, input: 1, output: 1)
ensure output[0] at q = input[0] at q for q in 0..2
rank r in 0..2 { tb 0 { copy output <- input } }
)");
  CHECK_FALSE(team->time({.plan = own, .bytes = 64, .nccl = true}, refused));
  REQUIRE(refused.has_errors());
  CHECK(refused.all().front().message == "NCCL has no such collective");
  CHECK_FALSE(team->broken());
}

TEST_CASE("where there is no NCCL a team says why, and times plans") {
  Diagnostics diagnostics;
  const auto team = RankTeam::start(
      {.batches = 1, .batch = std::chrono::microseconds(1), .nccl = true}, diagnostics);
  REQUIRE(team != nullptr);
  CHECK(team->nccl().empty());
  CHECK(team->why_no_nccl() == "there is none on the host device unless MSCCLC_NCCL names one");
  CHECK(team->time({.plan = compiled(kShift), .bytes = 64}, diagnostics));
}

TEST_CASE("calls between other kernels are timed by what they add to these") {
  Diagnostics diagnostics;
  const auto team = RankTeam::start(
      {.batches = 1, .batch = std::chrono::microseconds(1), .between = true}, diagnostics);
  REQUIRE(team != nullptr);
  CHECK(team->launches() == "one by one, between other kernels");
  const auto taken = team->time({.plan = compiled(kShift), .bytes = 4096}, diagnostics);
  // On a busy machine the kernels may take more time with the call than without.
  if (taken) {
    CHECK(taken->ns > 0);
  } else {
    CHECK(diagnostics.all().front().code == "too-short");
  }
}

TEST_CASE("a team without devices says why") {
  Diagnostics diagnostics;
  TeamOptions options;
  options.devices.gpus = true;
  const auto team = RankTeam::start(options, diagnostics);
  CHECK((team == nullptr) == diagnostics.has_errors());
}

}  // namespace mscclc
