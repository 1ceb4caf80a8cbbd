// Scratch that no op touches is no memory of the plan.
#include "passes/fuse/drop_scratch.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "passes/fuse/fuse_test_text.h"

namespace mscclc {
namespace {

/// Two ranks that declare s, gone, t, each of two chunks, and use gone on the way only.
std::string two_ranks_text(const std::string& body, const std::string& launch = "") {
  return "program t\ncollective allreduce(ranks: 2, chunks: 2)\n" + launch + R"(
rank r in 0..2 {
  buffer s[2]
  buffer gone[2]
  buffer t[2]
  channel ch = memory(1 - r)
)" + body +
         "\n}\n";
}

std::vector<std::string> scratch(const Program& program, uint32_t rank) {
  std::vector<std::string> names;
  for (const Buffer& b : program.ranks[rank].buffers) {
    if (b.kind == BufferKind::scratch) names.emplace_back(program.name_of(b.name));
  }
  return names;
}

using Names = std::vector<std::string>;

Program after_fuse(const std::string& text) {
  Program program = testing::parse(text);
  testing::run(program, {"assign", "fuse"});
  return program;
}

constexpr const char* kThrough = R"(
  put ch.t[0] <- input[0]
  signal ch ; wait ch
  copy gone[0] <- input[0]
  copy s[1] <- gone[0]
  reduce output[0] <- s[1], t[0])";

}  // namespace

TEST_CASE("drop scratch: what ops went through is gone, and the others keep their chunks") {
  const Program program = after_fuse(two_ranks_text(kThrough));
  REQUIRE(scratch(program, 0) == Names{"t"});
  REQUIRE(scratch(program, 1) == Names{"t"});
  REQUIRE(testing::listing(program, 1) == R"(
0: put ch.t[0] <- input[0]
0: signal ch
0: wait ch
0: reduce output[0] <- input[0], t[0]
)");
}

TEST_CASE("drop scratch: a second time there is nothing to drop") {
  Program program = testing::parse(two_ranks_text(kThrough));
  testing::run(program, {"assign"});
  fuse_ops(program);
  REQUIRE(drop_untouched_scratch(program) == 4);
  REQUIRE(drop_untouched_scratch(program) == 0);
}

TEST_CASE("drop scratch: a buffer stays at all ranks if one touches it, here or there") {
  REQUIRE(scratch(after_fuse(two_ranks_text("if r == 1 { copy gone[1] <- input[0] }")), 0) ==
          Names{"gone"});
  const Program far = after_fuse(two_ranks_text("if r == 1 { put ch.gone[1] <- input[0] }"));
  REQUIRE(scratch(far, 0) == Names{"gone"});
  REQUIRE(scratch(far, 1) == Names{"gone"});
  REQUIRE(far.ranks[1].ops.size() == 1);
  REQUIRE(far.dsts(far.ranks[1].ops[0])[0].buffer == kFirstScratch);
}

TEST_CASE("drop scratch: not where others may count on the layout") {
  const Names all = {"s", "gone", "t"};
  REQUIRE(scratch(after_fuse(two_ranks_text(kThrough, "launch reuse_scratch: true")), 0) == all);
  REQUIRE(scratch(after_fuse(two_ranks_text(kThrough, "launch fuse: false")), 0) == all);
  Program foreign = testing::parse(two_ranks_text(""));
  foreign.foreign = true;
  REQUIRE(drop_untouched_scratch(foreign) == 0);
}

TEST_CASE("drop scratch: at a switch all members have a buffer at one place") {
  const auto text = [](const std::string& first) {
    return "program t\ncollective allreduce(ranks: 2)\nrank 0 {\n" + first + R"(
  buffer gone[1]
  buffer s[1]
  channel sw = switch(0..2)
  switch_broadcast sw.s[0] <- input[0]
}
rank 1 {
  buffer gone[1]
  buffer s[1]
  channel sw = switch(0..2)
}
)";
  };
  const Program alike = after_fuse(text(""));
  REQUIRE(scratch(alike, 0) == Names{"s"});
  REQUIRE(scratch(alike, 1) == Names{"s"});
  REQUIRE(testing::listing(alike, 0) == "\n0: switch_broadcast sw.s[0] <- input[0]\n");
  const Program unlike = after_fuse(text("  buffer mine[1]"));
  REQUIRE(scratch(unlike, 0) == Names{"mine", "gone", "s"});
}

TEST_CASE("drop scratch: a sum that goes into a row function takes no memory") {
  const Program program = after_fuse(R"(program t
row f(x: row T) { out y: row T = T(x) * 2 }
collective allreduce(ranks: 2, chunks: 2, columns: 64, then: f)
rank r in 0..2 {
  buffer sum[2]
  buffer inbox[2] packets: LL16, copies: 2
  channel ch = memory(1 - r)
  put_packets ch.inbox[0..2] <- input[0..2]
  reduce_packets sum[0..2] <- input[0..2], inbox[0..2]
  apply f output[0..2] <- sum[0..2]
}
)");
  REQUIRE(scratch(program, 0) == Names{"inbox"});
  REQUIRE(testing::listing(program, 0) == R"(
0: put_packets ch.inbox[0..2] <- input[0..2]
0: reduce_packets output[0..2] <- input[0..2], inbox[0..2] then f _ <- _
)");
}

}  // namespace mscclc
