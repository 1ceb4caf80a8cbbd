#include "tools/report/pass_trace.h"

#include <catch2/catch.hpp>

#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

using testing::TestProgram;

/// Two ranks that put their input, in two chunks, and signal.
TestProgram two_puts() {
  TestProgram t(2, 2);
  for (uint32_t r = 0; r < 2; ++r) t.channel(r, ChannelKind::memory, "ch", {1 - r}, 1 - r, 0);
  for (uint32_t r = 0; r < 2; ++r) {
    for (uint32_t chunk = 0; chunk < 2; ++chunk) {
      Op& op = t.op_in(r, 0, OpKind::put, {});
      t.program.set_operands(op, std::vector{testing::far(0, kOutput, chunk)},
                             std::vector{testing::local(kInput, chunk)});
    }
    Op& op = t.op_in(r, 0, OpKind::signal, {});
    t.program.set_operands(op, std::vector{testing::end_of(0)}, std::vector<Operand>{});
  }
  return t;
}

std::vector<cost::PassLine> traced(Program& program, const std::vector<std::string>& passes) {
  PassTrace trace;
  PassOptions options;
  options.only = passes;
  trace.follow(options);
  Diagnostics diagnostics;
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(run_passes(program, options, diagnostics));
  return trace.lines();
}

}  // namespace

TEST_CASE("ops that a pass joins are said to be joined") {
  TestProgram t = two_puts();
  const auto lines = traced(t.program, {"fuse"});
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].pass == "fuse");
  CHECK(lines[0].did == "joined 'put' with its like: 2 for 4");
}

TEST_CASE("ops that a pass adds are said to be added, and nothing else") {
  TestProgram t = two_puts();
  const auto lines = traced(t.program, {"sync"});
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].pass == "sync");
  CHECK(lines[0].did == "added 'sync' (2)");
}

TEST_CASE("a pass that changes nothing has no line") {
  TestProgram t = two_puts();
  CHECK(traced(t.program, {"groups"}).empty());
}

TEST_CASE("replicas of an op are written out") {
  TestProgram t = two_puts();
  t.program.launch.instances = 2;
  const auto lines = traced(t.program, {"replicate"});
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].did == "wrote out 'put': 8 for 4");
  CHECK(lines[1].did == "wrote out 'signal': 4 for 2");
}

}  // namespace mscclc
