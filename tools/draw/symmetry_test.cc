// Which ranks do the same, and what peers are called.
#include "tools/draw/symmetry.h"

#include <catch2/catch.hpp>

#include "tests/helpers/programs/test_programs.h"

using namespace mscclc;
using namespace mscclc::draw;
using namespace mscclc::testing;

namespace {

/// Each rank signals `peer_of(rank)`.
template <class PeerOf>
Symmetry symmetry_of(uint32_t ranks, PeerOf&& peer_of) {
  TestProgram t(ranks, 1);
  for (uint32_t r = 0; r < ranks; ++r) {
    t.channel(r, ChannelKind::memory, "to", {}, peer_of(r));
    t.op_in(r, 0, OpKind::signal, {end_of(0)});
  }
  return find_symmetry(t.program, make_steps(t.program, flows_of(t.program)));
}

}  // namespace

TEST_CASE("draw symmetry: rings, flips, nodes, none") {
  const Symmetry ring = symmetry_of(6, [](uint32_t r) { return (r + 5) % 6; });
  CHECK(ring.names.turn == RankTurn::ring);
  CHECK(ring.names.one(2, 1) == "r − 1");
  CHECK(ring.names.one(2, 4) == "r + 2");
  CHECK(ring.classes.size() == 1);

  const Symmetry flip = symmetry_of(8, [](uint32_t r) { return r ^ 3; });
  CHECK(flip.names.turn == RankTurn::flip);
  CHECK(flip.names.one(5, 6) == "r xor 3");

  const Symmetry nodes = symmetry_of(6, [](uint32_t r) { return r / 3 * 3 + (r + 1) % 3; });
  CHECK(nodes.names.turn == RankTurn::nodes);
  CHECK(nodes.names.gpus == 3);
  CHECK(nodes.names.one(2, 0) == "mate + 1");
  CHECK(nodes.names.several(2, {0, 1}) == "its node");
  CHECK(nodes.names.several(2, {5}) == "its twins");
  CHECK(nodes.names.several(2, {0, 1, 5}) == "its node and its twins");

  const Symmetry none = symmetry_of(3, [](uint32_t) { return 0u; });
  CHECK(none.names.turn == RankTurn::none);
}

TEST_CASE("draw symmetry: several peers in words") {
  const PeerNames names{RankTurn::none, 10, 1};
  CHECK(names.several(0, {3, 1, 2, 7}) == "1–3, 7");
  CHECK(names.several(0, {1, 2, 3, 4, 5, 6, 7, 8, 9}) == "all others");
  CHECK(list_text(std::vector<int64_t>{0, 1, 4, 6, 8, 10, 12}) == "0, 1, 4, 6, 8, …");
}
