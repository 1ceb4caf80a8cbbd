// Every op in a tiny program, for every packet format, all data types, odd sizes, several schedules
// and successive calls.
#include <catch2/catch.hpp>
#include <set>

#include "executor/simulator/run.h"
#include "executor/testing/op_plans.h"

namespace mscclc {
namespace {

using namespace testing;

void run_right(Simulator& runner, const std::string& what, const RunSpec& spec) {
  Diagnostics diagnostics;
  const RunResult result = runner.run(spec, diagnostics);
  INFO(what << ", " << info(spec.dtype).name << ' ' << name(spec.op) << ", " << spec.bytes
            << " bytes, seed " << spec.schedule_seed << '\n'
            << render_text(diagnostics, Sources{}, 100));
  REQUIRE(result.status == RunStatus::right);
}

constexpr ReduceOp kReductions[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod,
                                    ReduceOp::avg};

TEST_CASE("every op, format, type and reduction") {
  for (const OpPlan& plan : op_plans()) {
    for (const PacketFormat format : formats_of(plan)) {
      const TestProgram t = plan.build(format);
      Simulator runner(t.program);
      uint64_t seed = 0;
      for (const DtypeInfo& type : dtype_table()) {
        if (is_sentinel(format) && type.kind != DtypeKind::kFloat) continue;
        for (const ReduceOp op : kReductions) {
          if (op != ReduceOp::sum && !t.program.contract.reduces()) continue;
          for (const uint64_t elements : {0, 1, 3, 17, 1001}) {
            run_right(runner, plan.name + " " + std::string(name(format)),
                      {.bytes = elements * type.bytes,
                       .dtype = type.dtype,
                       .op = op,
                       .iterations = 4,
                       .schedule_seed = seed++ % 8});
          }
        }
      }
    }
  }
}

TEST_CASE("every op under many schedules") {
  for (const OpPlan& plan : op_plans()) {
    for (const PacketFormat format : formats_of(plan)) {
      const TestProgram t = plan.build(format);
      Simulator runner(t.program);
      for (uint64_t seed = 0; seed < 24; ++seed) {
        run_right(runner, plan.name + " " + std::string(name(format)),
                  {.bytes = 2000 + 4 * seed, .iterations = 5, .schedule_seed = seed});
      }
    }
  }
}

TEST_CASE("the plans hold every op of the table") {
  // `pipeline` is an attribute of ops in the IR; `apply`, which engines of GPUs do not have, is in
  // tests/rows.
  std::set<std::string_view> seen = {"pipeline", "apply", "await", "notify"};
  for (const OpPlan& plan : op_plans()) {
    const TestProgram t = plan.build(PacketFormat::LL16);
    for (const Rank& rank : t.program.ranks) {
      for (const Op& op : rank.ops) seen.insert(info(op.kind).name);
    }
  }
  for (const OpInfo& op : op_table()) {
    INFO(op.name);
    CHECK(seen.count(op.name) == 1);
  }
}

}  // namespace
}  // namespace mscclc
