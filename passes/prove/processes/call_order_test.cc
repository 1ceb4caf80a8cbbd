// Which call of which plan a rank is in, where two plans take turns.
#include "passes/prove/processes/call_order.h"

#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc::proof {
namespace {

/// A plan of two ranks.
Program copies(const std::string& output) {
  Program program = testing::parse(
      "program t\ncollective sendrecv(ranks: 2, shift: 0)\nrank r in 0..2 {\n  tb 0 {\n    copy " +
      output + " <- input\n  }\n}\n");
  testing::run(program, {"assign", "groups", "split"});
  return program;
}

TEST_CASE("calls of one plan have one number on all ranks, whatever came in between") {
  const Program one = copies("output"), other = copies("output[0]");
  const std::vector<SharedPlan> plans = {{&one, "one", {0, 1}}, {&other, "other", {0, 1}}};
  const Joint joint = join(plans);
  const Symmetry none(joint.program);
  const System system(joint, none, false);
  RunOptions options;
  options.order = {{0, 1, 0}, {1, 0, 0}};
  options.part_divides = {false, true};
  CallOrder calls(system, options);
  CHECK(calls.count(0) == 3);
  CHECK(calls.instance(0, 0) == calls.instance(1, 1));
  CHECK(calls.instance(0, 1) == calls.instance(1, 0));
  CHECK(calls.instance(0, 2) == calls.instance(1, 2));
  CHECK(calls.instance(0, 0) != calls.instance(0, 2));
  CHECK(calls.call_of(1, calls.instance(0, 0)) == 1);
  CHECK(calls.divides(0, 1));
  CHECK_FALSE(calls.divides(1, 1));
  // The blocks of the second plan follow those of the first.
  CHECK(calls.first_block(0) == 0);
  CHECK(calls.first_block(1) == 1);
  CHECK(calls.end_of_blocks(1) == 2);
}

TEST_CASE("all have ended when each rank has made all its calls") {
  const Program plan = copies("output");
  const Symmetry none(plan);
  const System system(plan, none, false);
  const RunOptions options{.calls = 2};
  CallOrder calls(system, options);
  for (const uint32_t rank : {0, 1, 0}) {
    calls.next(rank);
    CHECK_FALSE(calls.all_ended());
  }
  calls.next(1);
  CHECK(calls.all_ended());
  CHECK(calls.instance(1, 1) == 1);
}

}  // namespace
}  // namespace mscclc::proof
