#include "tools/bench/contenders/moves.h"

#include <catch2/catch.hpp>

namespace mscclc::bench {
namespace {

Contract contract(CollectiveKind kind, uint32_t root = 0) {
  Contract c;
  c.kind = kind;
  c.ranks = 4;
  c.root = root;
  return c;
}

/// Bytes that a rank sends to others.
uint64_t sent(const Contract& c, uint32_t rank, uint64_t part) {
  uint64_t bytes = 0;
  for (const Move& m : least_moves(c, rank, part)) bytes += m.to_rank != rank ? m.bytes : 0;
  return bytes;
}

TEST_CASE("an allreduce sends 2 (n - 1) / n of its message") {
  CHECK(sent(contract(CollectiveKind::allreduce), 1, 4096) == 6144);
}

TEST_CASE("all others send each part once to each peer") {
  CHECK(sent(contract(CollectiveKind::allgather), 2, 1024) == 3072);
  CHECK(sent(contract(CollectiveKind::reducescatter), 2, 1024) == 3072);
  CHECK(sent(contract(CollectiveKind::alltoall), 0, 1024) == 3072);
}

TEST_CASE("a broadcast's root sends its message once, the others pass their shares on") {
  for (const uint32_t root : {0u, 2u}) {
    const Contract c = contract(CollectiveKind::broadcast, root);
    uint64_t received[4] = {};
    for (uint32_t r = 0; r < 4; ++r) {
      CHECK(sent(c, r, 3072) == (r == root ? 3072 : 2048));
      for (const Move& m : least_moves(c, r, 3072)) received[m.to_rank] += m.bytes;
    }
    for (const uint64_t bytes : received) CHECK(bytes == 3072);
  }
}

TEST_CASE("moves stay within a message, begin with the next rank, and include the own part") {
  for (const CollectiveKind kind : {CollectiveKind::allreduce, CollectiveKind::allgather,
                                    CollectiveKind::alltoall, CollectiveKind::reducescatter}) {
    const uint64_t message = kind == CollectiveKind::allreduce ? 1000 : 4000;
    for (uint32_t r = 0; r < 4; ++r) {
      const auto moves = least_moves(contract(kind), r, 1000);
      REQUIRE_FALSE(moves.empty());
      CHECK(moves.front().to_rank == (r + 1) % 4);
      CHECK(moves.back().to_rank == r);
      for (const Move& m : moves) CHECK((m.from + m.bytes <= message && m.to + m.bytes <= message));
    }
  }
}

TEST_CASE("a rank alone copies its message") {
  for (const CollectiveKind kind : {CollectiveKind::allreduce, CollectiveKind::allgather,
                                    CollectiveKind::alltoall, CollectiveKind::broadcast}) {
    Contract alone = contract(kind);
    alone.ranks = 1;
    const auto moves = least_moves(alone, 0, 1000);
    REQUIRE(moves.size() == 1);
    CHECK((moves[0].to_rank == 0 && moves[0].bytes == 1000));
  }
}

TEST_CASE("nothing is known of other collectives") {
  CHECK(least_moves(contract(CollectiveKind::barrier), 0, 8).empty());
}

TEST_CASE("all ranks know that there is a floor, also those that have nothing to move") {
  Contract c = contract(CollectiveKind::broadcast);
  c.ranks = 2;
  CHECK(least_moves(c, 0, 1024).size() == 2);
  CHECK(least_moves(c, 1, 1024).empty());
  CHECK(has_least_moves(c, 1024));
  CHECK_FALSE(has_least_moves(c, 0));
  CHECK_FALSE(has_least_moves(contract(CollectiveKind::reduce), 1024));
}

}  // namespace
}  // namespace mscclc::bench
