// Row functions: what lies in the place of a result before it does, rows of several types, and what
// is written of externals. (tests/prover_mutants/programs has wrong programs.)
#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using testing::as_written;
using testing::race;
using testing::verdict;

/// Rank 1 puts a result into `far`, where an op of rank 0 stores the same, in no order with it.
std::string stored_twice(const std::string& far, const std::string& ops) {
  return R"(program t
row f(x: row T) {
  out y: row T = T(x) * 2
}
collective allreduce(ranks: 3, columns: 8, then: f, inplace: false)
rank 0 {
  buffer slot[2] packets: LL16, copies: 2
  buffer x[1]
  channel c01 = memory(1)
  channel c02 = memory(2)
  tb 0 {
    put_packets c01.slot[0], c02.slot[0] <- input[0], input[0]
)" + ops +
         R"(
  }
  tb 1 { wait c01 }
}
rank 1 {
  buffer slot[2] packets: LL16, copies: 2
  channel c01 = memory(0)
  channel c12 = memory(2)
  tb 0 {
    put_packets c01.slot[0], c12.slot[1] <- input[0], input[0]
    reduce_packets output[0] <- slot[0], input[0], slot[1] then f _ <- _
    sync
    put )" +
         far + R"( <- output[0]
    sync
    signal c01
    signal c12
  }
}
rank 2 {
  buffer slot[2] packets: LL16, copies: 2
  buffer x[1]
  channel c02 = memory(0)
  channel c12 = memory(1)
  tb 0 {
    put_packets c02.slot[1], c12.slot[1] <- input[0], input[0]
    reduce_packets x[0] <- slot[0], slot[1], input[0] then f _ <- _
    sync
    copy output[0] <- x[0]
  }
  tb 1 { wait c12 }
}
)";
}

// Only the first destination of such an op may hold the sum for a while.
TEST_CASE("what a sum and its function store is stored by another rank, too") {
  const std::string sum = "reduce_packets output[0] <- input[0], slot[0], slot[1]";
  const std::string apart = "reduce_packets x[0] <- input[0], slot[0], slot[1]";
  CHECK(verdict(stored_twice("c01.output[0]", sum + " then f _ <- _")) ==
        race("output[0] of rank 0"));
  CHECK(verdict(stored_twice("c01.output[0]", sum + "\nsync\napply f output[0] <- output[0]")) ==
        race("output[0] of rank 0"));
  CHECK(verdict(stored_twice("c01.output[0]", apart + "\nsync\napply f output[0] <- x[0]")) ==
        "proved");
  CHECK(verdict(stored_twice("c01.output[0]",
                             apart + " then f _ <- _\nsync\ncopy output[0] <- x[0]")) == "proved");
}

TEST_CASE("the other destinations of a sum and its function get nothing but the result") {
  std::string put = "reduce_packets_put output[0], c02.output[0] <- input[0], slot[0], slot[1]";
  const std::string text = stored_twice("c12.output[0]", put + " then f _ <- _\nsync\nsignal c02");
  // Rank 2 hears of rank 0's store, too.
  std::string heard = text;
  heard.replace(heard.find("tb 1 { wait c12 }"), 17, "tb 1 { wait c12 ; wait c02 }");
  CHECK(verdict(heard) == "proved");
}

/// Three ranks keep what they make in an external; rank 0's output is everyone's.
std::string kept(const std::string& sum, const std::string& order) {
  return R"(program t
row f(x: row T) {
  out kept: row T = T(x)
  out y: row T = T(x) * 2
}
external kept: row T out
collective allreduce(ranks: 3, columns: 8, then: f, )" +
         order + R"(inplace: false)
rank r in 0..3 {
  let others = 0..3 except r
  buffer slot[others] packets: LL16, copies: 2
  buffer back[1] packets: LL16, copies: 2
  buffer x[1]
  channel ch[p in others] = memory(p)
  tb 0 {
    for p in others { put_packets ch[p].slot[r] <- input[0] }
    if r == 0 {
      reduce_packets output[0] <- input[0], slot[1], slot[2] then f kept[0], _ <- _
      sync
      for p in others { put_packets ch[p].back[0] <- output[0] }
    } else {
      reduce_packets x[0] <- )" +
         sum + R"( then f kept[0], _ <- _
      unpack_packets output[0] <- back[0]
    }
  }
}
)";
}

TEST_CASE("what is kept in externals is added up in the order that is promised") {
  const std::string turned = "slot[(r + 1) % 3], slot[(r + 2) % 3], input[0]";
  const std::string in_order = "slot[p] for p in 0..r, input[0], slot[p] for p in r + 1 .. 3";
  const auto orders = [](const std::string& text) {
    Diagnostics diagnostics;
    const Proof proof = prove(as_written(text), diagnostics);
    CHECK(proof.proved);
    return std::pair(proof.orders.replicated, proof.orders.ranks);
  };
  CHECK(orders(kept(in_order, "")) == std::pair(true, true));
  CHECK(orders(kept(turned, "")) == std::pair(false, false));
  CHECK(verdict(kept(in_order, "order: ranks, ")) == "proved");
  CHECK(verdict(kept(turned, "order: ranks, "))
            .starts_with("sum-order: chunk 0 of the external 'kept' of rank "));
}

}  // namespace
}  // namespace mscclc
