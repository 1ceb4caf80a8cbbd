// Ranks that time calls, on the host device: what they do with calls that are right and wrong.
// Times themselves are not looked at.
#include "tools/measure/rank_team.h"

#include <catch2/catch.hpp>

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

TEST_CASE("a team without devices says why") {
  Diagnostics diagnostics;
  TeamOptions options;
  options.devices.gpus = true;
  const auto team = RankTeam::start(options, diagnostics);
  CHECK((team == nullptr) == diagnostics.has_errors());
}

}  // namespace mscclc
