// Colours of blocks and of what they use.
#include "tools/diff/identity.h"

#include <catch2/catch.hpp>

#include "tests/helpers/programs/test_programs.h"

using namespace mscclc;
using namespace mscclc::diff;
using namespace mscclc::testing;

TEST_CASE("diff identity: blocks with the same ops have the same colour") {
  TestProgram t(1, 2);
  for (const uint32_t b : {0u, 1u}) {
    t.op_in(0, b, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  }
  t.op_in(0, 2, OpKind::copy, {local(kOutput, 1)}, {local(kInput, 1)});
  const auto ranks = identities(t.program);
  REQUIRE(ranks.size() == 1);
  CHECK(ranks[0].blocks[0] == ranks[0].blocks[1]);
  CHECK(ranks[0].blocks[0] != ranks[0].blocks[2]);
}

TEST_CASE("diff identity: channels differ by their use at both ends") {
  TestProgram t(2, 1);
  for (const uint32_t r : {0u, 1u}) {
    for (const uint32_t c : {0u, 1u, 2u}) t.channel(r, ChannelKind::memory, "ch", {c}, 1 - r, c);
  }
  t.op_in(0, 0, OpKind::signal, {end_of(0)});
  const auto ranks = identities(t.program);
  CHECK(ranks[1].channels[1] == ranks[1].channels[2]);
  CHECK(ranks[1].channels[0] != ranks[1].channels[1]);
}

TEST_CASE("diff identity: seen from its rank an op of a ring is the same at all ranks") {
  TestProgram t(3, 1);
  for (uint32_t r = 0; r < 3; ++r) {
    t.channel(r, ChannelKind::memory, "next", {}, (r + 1) % 3);
    t.op_in(r, 0, OpKind::put, {far(0, kOutput, 0)}, {local(kInput, 0)});
  }
  const auto coarse = [&](uint32_t r, bool turned) {
    return coarse_identity(t.program, r, t.program.ranks[r].ops[0], turned);
  };
  CHECK(coarse(0, true) == coarse(1, true));
  CHECK(coarse(0, false) != coarse(1, false));
}
