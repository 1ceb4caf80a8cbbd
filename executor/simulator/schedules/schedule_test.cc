// Schedules as text: what is written is read back, and every key is checked.
#include "executor/simulator/schedules/schedule.h"

#include <catch2/catch.hpp>

#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

const std::string kSameAsThen = " (FILE, -D and --target must be those of when it was written)\n";

using namespace testing;

Schedule sample(const Program& program) {
  Schedule s;
  s.plan = program_hash(program);
  s.spec = {.bytes = 64,
            .dtype = Dtype::f16,
            .op = ReduceOp::max,
            .in_place = false,
            .iterations = 3,
            .schedule_seed = 5};
  Adversary& adversary = s.spec.adversary.emplace();
  adversary.strands = 3;
  adversary.holds = {{.what = Hold::What::access, .rank = 1, .op = 0, .strand = 2, .call = 1},
                     {.what = Hold::What::op, .rank = 0, .op = 2, .call = 2},
                     {.what = Hold::What::proxy, .rank = 0, .op = 1},
                     {.what = Hold::What::call, .rank = 1, .call = 2}};
  for (Hold& hold : adversary.holds) hold.note = describe(program, hold);
  return s;
}

const std::string kText =
    "{\"schema\": 1,\n"
    " \"plan\": \"HASH\",\n"
    " \"bytes\": 64, \"dtype\": \"f16\", \"op\": \"max\", \"in_place\": false,\n"
    " \"calls\": 3, \"strands\": 3, \"seed\": 5,\n"
    " \"holds\": [\n"
    "  {\"what\": \"access\", \"rank\": 1, \"call\": 1, \"op\": 0, \"strand\": 2, \"note\": \"put "
    "ch[0].parts[0] <- input[0] (rank 1, tb 0)\"},\n"
    "  {\"what\": \"op\", \"rank\": 0, \"call\": 2, \"op\": 2, \"note\": \"wait ch[1] (rank 0, tb "
    "0)\"},\n"
    "  {\"what\": \"proxy\", \"rank\": 0, \"call\": 0, \"op\": 1, \"note\": \"signal ch[1] (rank "
    "0, "
    "tb 0)\"},\n"
    "  {\"what\": \"call\", \"rank\": 1, \"call\": 2, \"note\": \"rank 1 enters call 2 late\"}]}\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("what is written is read back") {
  const TestProgram t = two_shot(2);
  const Schedule written = sample(t.program);
  const std::string text = write_schedule(written);
  CHECK(text == replaced(kText, "HASH", program_hash(t.program)));
  Diagnostics diagnostics;
  const auto back = read_schedule(text, "s.json", t.program, diagnostics);
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(back);
  CHECK(write_schedule(*back) == text);
  CHECK(back->spec.adversary->holds == written.spec.adversary->holds);
  CHECK(back->spec.op == ReduceOp::max);
}

TEST_CASE("a plan's hash is what it does, not where it stands") {
  TestProgram t = two_shot(2);
  const std::string hash = program_hash(t.program);
  t.located(t.program.ranks[0].ops[0], t.site(0, 3, 4));
  t.program.files = {"a.mscl"};
  CHECK(program_hash(t.program) == hash);
  t.program.ranks[0].ops[1].relaxed = true;
  CHECK(program_hash(t.program) != hash);
}

TEST_CASE("every key is checked") {
  const TestProgram t = two_shot(2);
  const std::string text = write_schedule(sample(t.program));
  struct Case {
    const char *from, *to, *error;
  };
  const Case cases[] = {
      {"\"schema\": 1", "\"schema\": 3",
       "s.json: schema: error: schema 3 is unknown; expected 1 or 2"},
      {"\"schema\": 1", "\"schema\": 2",
       "s.json: error: the schedule is for several plans; all of them must be given"},
      {"\"schema\": 1", "\"schema\": 1, \"more\": 1", "s.json: error: unknown key 'more'"},
      {"\"strands\": 3, ", "", "s.json: error: key 'strands' is missing"},
      {"\"bytes\": 64", "\"bytes\": 9999999999999",
       "s.json: bytes: error: 9999999999999 is too large; at most 1099511627776"},
      {"\"f16\"", "\"f17\"", "s.json: dtype: error: 'f17' is not a data type"},
      {"\"max\"", "\"call\"", "s.json: op: error: 'call' is no reduction"},
      {"false", "0", "s.json: in_place: error: expected a boolean, found a number"},
      {"\"calls\": 3", "\"calls\": 0", "s.json: calls: error: is 0"},
      {"\"calls\": 3", "\"calls\": 1001", "s.json: calls: error: 1001 is too large; at most 1000"},
      {"\"strands\": 3", "\"strands\": 9", "s.json: strands: error: 9 is too large; at most 8"},
      {"\"what\": \"access\"", "\"what\": \"load\"",
       "s.json: holds[0].what: error: 'load' cannot be held; op, access, proxy or call"},
      {"\"rank\": 1", "\"rank\": 2", "s.json: holds[0].rank: error: there are 2 ranks"},
      {"\"call\": 1", "\"call\": 3", "s.json: holds[0].call: error: there are 3 calls"},
      {"\"op\": 0", "\"op\": 6", "s.json: holds[0].op: error: there are 6 ops"},
      {"\"strand\": 2", "\"strand\": 3", "s.json: holds[0].strand: error: there are 3 strands"},
      {"\"op\": 0, ", "", "s.json: holds[0]: error: key 'op' is missing"},
      {"\"what\": \"proxy\", ", "\"what\": \"proxy\", \"strand\": 0, ",
       "s.json: holds[2].strand: error: a proxy has no strand"},
      {"\"what\": \"call\", ", "\"what\": \"call\", \"op\": 0, ",
       "s.json: holds[3]: error: a call has no 'op'"},
  };
  for (const Case& c : cases) {
    Diagnostics diagnostics;
    CHECK(!read_schedule(replaced(text, c.from, c.to), "s.json", t.program, diagnostics));
    CHECK(render_text(diagnostics, Sources{}) == std::string(c.error) + "\n");
  }
}

/// Two plans, on ranks 0 and 1, and on 1 and 2.
struct TwoPlans {
  const TestProgram first = two_shot(2), second = exchange();
  std::vector<PlacedPlan> plans = {{&first.program, "a", {0, 1}}, {&second.program, "b", {2, 1}}};

  Schedule sample() const {
    Schedule s;
    for (const PlacedPlan& plan : plans)
      s.plans.push_back({program_hash(*plan.program), plan.ranks});
    s.spec.in_place = true;
    s.spec.schedule_seed = 3;
    s.spec.plan_bytes = {64, 100};
    s.spec.order = {{0, 0}, {0, 1, 0}, {1}};
    Adversary& adversary = s.spec.adversary.emplace();
    adversary.holds = {{.what = Hold::What::access, .rank = 1, .op = 3, .strand = 1, .call = 1},
                       {.what = Hold::What::call, .rank = 2}};
    for (Hold& hold : adversary.holds) hold.note = describe(plans, s.spec.order, hold);
    return s;
  }
};

const std::string kTextOfTwo =
    "{\"schema\": 2,\n"
    " \"plans\": [\n"
    "  {\"plan\": \"HASH\", \"ranks\": [0, 1], \"bytes\": 64},\n"
    "  {\"plan\": \"HASH\", \"ranks\": [2, 1], \"bytes\": 100}],\n"
    " \"dtype\": \"f32\", \"op\": \"sum\", \"in_place\": true,\n"
    " \"strands\": 2, \"seed\": 3,\n"
    " \"calls\": [\n"
    "  [0, 0],\n"
    "  [0, 1, 0],\n"
    "  [1]],\n"
    " \"holds\": [\n"
    "  {\"what\": \"access\", \"rank\": 1, \"call\": 1, \"op\": 3, \"strand\": 1, \"note\": \"put "
    "ch[0].output[0] <- input[0] (rank 1, tb 0) of 'b'\"},\n"
    "  {\"what\": \"call\", \"rank\": 2, \"call\": 0, \"note\": \"rank 2 enters call 0 late\"}]}\n";

TEST_CASE("a schedule of several plans is read back") {
  const TwoPlans two;
  const Schedule written = two.sample();
  const std::string text = write_schedule(written);
  const std::string expected = replaced(kTextOfTwo, "HASH", written.plans[0].plan);
  CHECK(text == replaced(expected, "HASH", written.plans[1].plan));
  Diagnostics diagnostics;
  const auto back = read_schedule(text, "s.json", two.plans, diagnostics);
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(back);
  CHECK(write_schedule(*back) == text);
  CHECK(back->spec.order == written.spec.order);
  CHECK(back->spec.plan_bytes == written.spec.plan_bytes);
}

TEST_CASE("every key of a schedule of several plans is checked") {
  const TwoPlans two;
  const std::string text = write_schedule(two.sample());
  struct Case {
    const char *from, *to, *error;
  };
  const Case cases[] = {
      {"\"seed\": 3", "\"seed\": 3, \"bytes\": 4", "s.json: error: unknown key 'bytes'"},
      {"\"strands\": 2, ", "", "s.json: error: key 'strands' is missing"},
      {"\"ranks\": [0, 1], ", "", "s.json: plans[0]: error: key 'ranks' is missing"},
      {"\"ranks\": [0, 1]", "\"ranks\": [1, 0]",
       "s.json: plans[0].ranks: error: the schedule has the plan on other ranks; 'a' is on 0, 1"},
      {"\"bytes\": 100", "\"bytes\": 9999999999999",
       "s.json: plans[1].bytes: error: 9999999999999 is too large; at most 1099511627776"},
      {"  [1]],", "  [1], []],", "s.json: calls: error: there are 3 ranks"},
      {"  [1]],", "  [2]],", "s.json: calls[2][0]: error: there are 2 plans"},
      {"  [1]],", "  [0]],", "s.json: calls[2][0]: error: 'a' does not run on rank 2"},
      {"  [1]],", "  1],", "s.json: calls[2]: error: expected an array, found a number"},
      {"  [1]],", "  [1, 1]],",
       "s.json: calls: error: 'b' is called 2 times on rank 2, and 1 on rank 1"},
      {"  [0, 0],\n  [0, 1, 0],\n  [1]],", "[], [], []],",
       "s.json: calls: error: there are no calls"},
      {"\"rank\": 1", "\"rank\": 3", "s.json: holds[0].rank: error: there are 3 ranks"},
      {"\"call\": 1", "\"call\": 3", "s.json: holds[0].call: error: there are 3 calls"},
      {"\"op\": 3", "\"op\": 7", "s.json: holds[0].op: error: there are 7 ops"},
      {"\"call\": 1, \"op\": 3", "\"call\": 0, \"op\": 6",
       "s.json: holds[0].op: error: there are 6 ops"},
  };
  for (const Case& c : cases) {
    Diagnostics diagnostics;
    CHECK(!read_schedule(replaced(text, c.from, c.to), "s.json", two.plans, diagnostics));
    CHECK(render_text(diagnostics, Sources{}) == std::string(c.error) + "\n");
  }
  std::string many = "[0";
  for (int i = 0; i < 1000; ++i) many += ", 0";
  Diagnostics diagnostics;
  CHECK(!read_schedule(replaced(text, "[0, 0]", many + "]"), "s.json", two.plans, diagnostics));
  CHECK(render_text(diagnostics, Sources{}) == "s.json: calls[0]: error: more than 1000 calls\n");
}

TEST_CASE("plans over the same ranks have one order of calls") {
  const TestProgram t = exchange();
  const PlacedPlan plans[] = {{&t.program, "a", {0, 1}}, {&t.program, "b", {1, 0}}};
  Schedule s;
  for (const PlacedPlan& plan : plans) s.plans.push_back({program_hash(*plan.program), plan.ranks});
  s.spec.in_place = false;
  s.spec.adversary.emplace();
  s.spec.plan_bytes = {64, 64};
  s.spec.order = {{0, 1}, {1, 0}};
  Diagnostics diagnostics;
  CHECK(!read_schedule(write_schedule(s), "s.json", plans, diagnostics));
  CHECK(render_text(diagnostics, Sources{}) ==
        "s.json: calls: error: ranks 0 and 1 call plans of the same ranks in different orders\n");
  s.spec.order = {{0, 1}, {0, 1}};
  CHECK(read_schedule(write_schedule(s), "s.json", plans, diagnostics));
}

TEST_CASE("a schedule of several plans is for these plans, all of them") {
  const TwoPlans two;
  const std::string text = write_schedule(two.sample());
  const auto error_of = [&](const std::vector<PlacedPlan>& plans, const std::string& json) {
    Diagnostics diagnostics;
    CHECK(!read_schedule(json, "s.json", plans, diagnostics));
    return render_text(diagnostics, Sources{});
  };
  CHECK(error_of({two.plans[0]}, text) ==
        "s.json: error: the schedule is for several plans; all of them must be given\n");
  CHECK(error_of({two.plans[0], two.plans[1], two.plans[1]}, text) ==
        "s.json: plans: error: the schedule is for 2 plans; 3 are given\n");
  CHECK(error_of({two.plans[0], {&two.first.program, "c", {2, 1}}}, text) ==
        "s.json: plans[1].plan: error: the schedule is for another plan; that of 'c' is " +
            program_hash(two.first.program) + kSameAsThen);
  CHECK(error_of(two.plans, write_schedule(sample(two.first.program))) ==
        "s.json: error: the schedule is for one plan; 2 are given\n");
}

TEST_CASE("a schedule for another plan is refused") {
  const TestProgram t = two_shot(2), other = two_shot(3);
  Diagnostics diagnostics;
  CHECK(!read_schedule(write_schedule(sample(t.program)), "s.json", other.program, diagnostics));
  CHECK(render_text(diagnostics, Sources{}) ==
        "s.json: plan: error: the schedule is for another plan; this one's is " +
            program_hash(other.program) + kSameAsThen);
}

}  // namespace
}  // namespace mscclc
