#include "compiler/unroll/declarer.h"

#include <catch2/catch.hpp>

#include "compiler/unroll/unroll_test_parts.h"

using namespace mscclc;

TEST_CASE("what a body declares, the rank owns") {
  Unrolling u(
      "collective allreduce(ranks: 2)\nrank 0 {\n"
      "  buffer inbox[i in 0..2, 0..i + 1] copies: 2\n"
      "  channel ch[k in 0..3] = port(1) where k != 1 credits: 4\n"
      "  semaphore a, b = 2\n}\n");
  u.declare(0);
  const Rank& rank = u.program().ranks[0];
  REQUIRE(rank.buffers.size() == 3);
  CHECK(rank.buffers[2].chunks == 3);
  CHECK(rank.buffers[2].copies == 2);
  REQUIRE(rank.channels.size() == 2);
  CHECK(rank.channels[1].credits == 4);
  REQUIRE(rank.semaphores.size() == 2);
  CHECK(rank.semaphores[1].initial == 2);
}

TEST_CASE("a declaration with a mistake is not looked for") {
  Unrolling u("collective allreduce(ranks: 2)\nrank 0 { buffer inbox[-1] }\n");
  u.declare(0);
  CHECK(u.message() == "a dimension of -1");
  const NameId inbox = u.program().intern("inbox");
  CHECK(u.scope.builder.state().owned().names().is_poisoned(inbox));
}
