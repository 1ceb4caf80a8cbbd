#include "executor/simulator/run.h"

#include <catch2/catch.hpp>

#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;

constexpr ReduceOp kReductionsToRun[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max,
                                         ReduceOp::prod, ReduceOp::avg};

std::string text_of_run(const Diagnostics& diagnostics) {
  return render_text(diagnostics, Sources{}, 100);
}

TEST_CASE("one-shot allreduce: every format, type, reduction, odd sizes") {
  for (const PacketFormatInfo& row : packet_formats()) {
    const TestProgram t = one_shot(3, 2, row.format);
    Simulator runner(t.program);
    for (const DtypeInfo& type : dtype_table()) {
      if (is_sentinel(row.format) && type.kind != DtypeKind::kFloat) continue;
      for (const ReduceOp op : kReductionsToRun) {
        for (const uint64_t elements : {0, 1, 3, 17, 1001}) {
          for (const uint64_t seed : {0, 1, 2, 3}) {
            Diagnostics diagnostics;
            const RunResult result = runner.run({.bytes = elements * type.bytes,
                                                 .dtype = type.dtype,
                                                 .op = op,
                                                 .iterations = 3,
                                                 .schedule_seed = seed},
                                                diagnostics);
            INFO(row.name << ' ' << type.name << ' ' << name(op) << ' ' << elements << " seed "
                          << seed << '\n'
                          << text_of_run(diagnostics));
            REQUIRE(result.status == RunStatus::right);
            REQUIRE(result.count == elements);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace mscclc
