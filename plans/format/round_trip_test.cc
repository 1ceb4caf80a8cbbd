// A plan keeps all of its program: what was written and read again prints the same, and is written
// again as the same bytes.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "ir/print/print.h"
#include "ir/verify/verify.h"
#include "plans/format/plan_json.h"
#include "tests/helpers/plans/random_plan.h"

namespace mscclc {
namespace {

const Target& host_target() { return builtin_targets().front(); }

std::string all_errors(const Diagnostics& diagnostics) {
  return render_text(diagnostics, Sources());
}

}  // namespace

TEST_CASE("random programs survive the way to a plan and back") {
  std::set<OpKind> met;
  for (uint64_t seed = 0; seed < 800; ++seed) {
    INFO("seed " << seed);
    const Program program = testing::random_plan(seed);
    for (const Rank& rank : program.ranks) {
      for (const Op& op : rank.ops) met.insert(op.kind);
    }
    Diagnostics diagnostics;
    const bool right = verify_structure(program, diagnostics);
    INFO(all_errors(diagnostics));
    REQUIRE(right);
    const auto plan = write_plan(program, host_target(), diagnostics);
    INFO(all_errors(diagnostics));
    REQUIRE(plan);
    const auto again = read_plan(*plan, "plan.json", diagnostics);
    INFO(all_errors(diagnostics));
    REQUIRE(again);
    REQUIRE(print_ir(*again) == print_ir(program));
    REQUIRE(write_plan(*again, host_target(), diagnostics) == plan);
  }
  // All but `pipeline`, which is no op of a block, `apply`, which tests/rows has, and those of
  // flags, which tests/overlap has.
  CHECK(met.size() == op_table().size() - 4);
}

}  // namespace mscclc
