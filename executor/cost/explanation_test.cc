#include "executor/cost/explanation.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "executor/testing/test_plans.h"

namespace mscclc::cost {
namespace {

using testing::TestProgram;

Explanation explained(const Program& program, uint64_t bytes) {
  Diagnostics diagnostics;
  const Machine machine = find_machine("2xH200", diagnostics).value();
  const auto e = explain(program, call_of(program, bytes, Dtype::f32), machine, diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(e);
  return *e;
}

}  // namespace

TEST_CASE("an explanation's parts agree with one another") {
  const TestProgram t = testing::exchange();
  const Explanation e = explained(t.program, 1 << 20);
  CHECK(e.bytes == 1 << 20);
  CHECK(e.ranks == 2);
  CHECK(e.blocks == 1);
  CHECK(e.hops == 2);
  CHECK(e.bound.hops == 1);
  CHECK(e.scratch_bytes == 0);
  double causes = 0, path = 0;
  for (const double us : e.causes_us) causes += us;
  for (const PathLine& line : e.path) path += line.end_us - line.begin_us;
  CHECK(causes == Approx(e.alone_us));
  CHECK(path == Approx(e.alone_us));
  CHECK(e.us >= e.bound.ns / 1e3);
  REQUIRE(e.traffic.size() == 3);
  CHECK(e.traffic[0].bytes == 1 << 20);
  CHECK(e.traffic[0].least == 1 << 20);
}

TEST_CASE("an explanation says first why a plan is not proved") {
  const TestProgram t = testing::exchange();
  Explanation e = explained(t.program, 4096);
  const auto says = [&](std::string_view text) {
    return explanation_text(e).find(text) != std::string::npos;
  };
  CHECK_FALSE(nlohmann::json::parse(explanation_json(e)).contains("proved"));
  e.not_proved = "";
  CHECK_FALSE(says("NOT PROVED"));
  CHECK(nlohmann::json::parse(explanation_json(e)).at("proved") == true);
  e.not_proved = "a.mscl:3:1: error: a race";
  CHECK(says(": a.mscl:3:1: error: a race\n\ntime "));
  CHECK(nlohmann::json::parse(explanation_json(e)).at("proved") == false);
  CHECK(nlohmann::json::parse(explanation_json(e)).at("not_proved") == *e.not_proved);
}

TEST_CASE("an explanation of what launches nothing has no times") {
  const auto check = [&](const Program& program, uint64_t bytes, const std::string& why) {
    const Explanation e = explained(program, bytes);
    CHECK(e.us == 0);
    CHECK(e.alone_us == 0);
    CHECK(
        explanation_text(e).ends_with("\n\ntime      none, as nothing is launched: " + why + "\n"));
    CHECK(nlohmann::json::parse(explanation_json(e)).at("nothing_launched") == why);
  };
  const TestProgram t = testing::exchange();
  CHECK(nothing_text(explained(t.program, 4096)).empty());
  check(t.program, 0, "the call moves nothing");
  TestProgram none(2, 1);
  none.program.contract = t.program.contract;
  none.program.split = true;
  check(none.program, 4096, "the plan has no ops");
}

TEST_CASE("ops without places are lines of their own, however many there are") {
  constexpr uint32_t kOps = 40;
  TestProgram t(2, kOps);
  t.program.contract = testing::exchange().program.contract;
  t.program.split = true;
  for (uint32_t c = 0; c < kOps; ++c) {
    for (const uint32_t r : {0u, 1u}) {
      t.op_in(r, 0, OpKind::copy, {testing::local(kOutput, c)}, {testing::local(kInput, c)});
    }
  }
  const Explanation e = explained(t.program, 40 << 10);
  CHECK(e.path.size() >= kOps);
  for (const PathLine& line : e.path) CHECK(line.times == 1);
}

TEST_CASE("why an op synchronises is said from its neighbours") {
  const TestProgram t = testing::exchange();
  const Explanation e = explained(t.program, 4096);
  REQUIRE(e.syncs.size() == 5);
  CHECK(e.syncs[0].op == "signal relaxed");
  CHECK(e.syncs[0].why == "says that this rank has come so far; orders no data");
  CHECK(e.syncs[1].op == "wait relaxed");
  CHECK(e.syncs[2].op == "sync");
  CHECK(e.syncs[2].count == 4);
  CHECK(e.syncs[2].why ==
        "all threads go on only when one of them has seen the signal, before 'put'");
  CHECK(e.syncs[3].op == "signal");
  CHECK(e.syncs[3].why == "says that what the block has stored is there, after 'put'");
  CHECK(e.syncs[4].why == "what the other rank has stored is there");
}

TEST_CASE("text and JSON say the same") {
  const TestProgram t = testing::exchange();
  const Explanation e = explained(t.program, 65536);
  const auto json = nlohmann::json::parse(explanation_json(e));
  CHECK(json["collective"] == "sendrecv");
  CHECK(json["bytes"] == 65536);
  CHECK(json["machine"] == "2xH200");
  CHECK(json["origin"] == "measured");
  CHECK(json["path"].size() == e.path.size());
  CHECK(json["syncs"].size() == 5);
  CHECK(json["us"].get<double>() == Approx(e.us).margin(0.001));
  const std::string text = explanation_text(e);
  CHECK(text.find("sendrecv of 64 KiB (f32) over 2 ranks, on 2xH200 (measured)") !=
        std::string::npos);
  CHECK(text.find("synchronisation\n") != std::string::npos);
  CHECK(text.find("critical path") != std::string::npos);
}

TEST_CASE("the size of a call is said exactly, and beside it what was asked for") {
  CHECK(exact_size_text(7) == "7 bytes");
  CHECK(exact_size_text(65536) == "64 KiB");
  CHECK(exact_size_text(3 << 19) == "1.50 MiB");
  CHECK(exact_size_text((1 << 20) - 4) == "1048572 bytes");
  const TestProgram t = testing::exchange();
  Diagnostics diagnostics;
  const Machine machine = find_machine("2xH200", diagnostics).value();
  const auto of = [&](uint64_t bytes) {
    return *explain(t.program, call_of(t.program, bytes, Dtype::f32), machine, diagnostics, bytes);
  };
  const Explanation less = of(4099), same = of(4096);
  CHECK(less.bytes == 4096);
  CHECK(less.asked_bytes == 4099);
  CHECK(
      explanation_text(less).find(
          "asked for 4099 bytes; a call has whole elements, or rows, for every rank: here 4 KiB") !=
      std::string::npos);
  CHECK(nlohmann::json::parse(explanation_json(less)).at("asked_bytes") == 4099);
  CHECK_FALSE(same.asked_bytes);
  CHECK(explanation_text(same).find("asked for") == std::string::npos);
}

TEST_CASE("what callers add is printed") {
  const TestProgram t = testing::exchange();
  Explanation e = explained(t.program, 65536);
  CHECK(explanation_text(e).find("what passes did") == std::string::npos);
  e.passes = {{"fuse", "line 3", "joined put and put into 'put' (2)"}};
  e.why_picked = "the first row";
  e.choices = {{"a:B=1", 2.5, true}, {"b", 3.5, false}};
  const std::string text = explanation_text(e);
  CHECK(text.find("fuse          line 3: joined put and put into 'put' (2)") != std::string::npos);
  CHECK(text.find("     2.50 us  a:B=1  (what the library picks)\n") != std::string::npos);
  const auto json = nlohmann::json::parse(explanation_json(e));
  CHECK(json["passes"][0]["place"] == "line 3");
  CHECK(json["choices"][1]["us"] == 3.5);
  CHECK(json["why_picked"] == "the first row");
}

}  // namespace mscclc::cost
