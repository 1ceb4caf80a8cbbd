// The explorer on plans with row functions, alone and in one step with the sum: it and the prover
// agree.

#include "passes/prove/prove_test_text.h"
#include "tests/explore/explore.h"

namespace mscclc {
namespace {

/// One shot of two ranks; `ops` follow what they have put into each other's slot.
std::string one_shot_rows(const std::string& ops, bool in_place) {
  return R"(program t
row f(x: row T, residual: row T) {
  let stream = T(x) + residual
  out residual_out: row T = stream
  out y: row T = stream * 2
}
external residual: row T inout
collective allreduce(ranks: 2, columns: 8, then: f, inplace: )" +
         std::string(in_place ? "true" : "false") + R"()
rank r in 0..2 {
  buffer slot[1] packets: LL16, copies: 2
  buffer t[1] packets: LL16
  buffer x[1]
  channel ch = memory(1 - r)
  tb 0 {
    put_packets ch.slot[0] <- input[0]
)" + ops +
         "\n  }\n}\n";
}

/// What the explorer finds where sums and row functions are one op, or ops of their own.
Exploration explore_rows(const Program& program, bool in_place = false) {
  ExploreOptions options{.in_place = in_place, .same_bits = true, .reduced = true};
  const Exploration together = explore(program, options);
  options.rows_apart = true;
  return together.verdict == Verdict::right ? explore(program, options) : together;
}

/// As both see it: "right", or what the explorer found.
std::string both(const Program& program, bool in_place = false) {
  Diagnostics diagnostics;
  const bool proved = prove(program, diagnostics).proved;
  const Exploration found = explore_rows(program, in_place);
  INFO(found.reason);
  CHECK(proved == (found.verdict == Verdict::right));
  return std::string(name(found.verdict));
}
std::string both(const std::string& ops, bool in_place = false) {
  return both(testing::as_written(one_shot_rows(ops, in_place)), in_place);
}

const std::string kSum = "reduce_packets x[0] <- input[0], slot[0]\n";
const std::string kThen = " <- input[0], slot[0] then f residual[0], _ <- _, residual[0]\n";

}  // namespace

TEST_CASE("explorer: a row function of the sum, apart and in one step") {
  CHECK(both(kSum + "sync ; apply f residual[0], output[0] <- x[0], residual[0]") == "right");
  CHECK(both("reduce_packets output[0]" + kThen) == "right");
}

// What it has sent of a row, another thread may store over.
TEST_CASE("explorer: the block meets between what it sends and what it stores in its place") {
  CHECK(both("reduce_packets output[0]" + kThen, true) == "race");
  CHECK(both("sync ; reduce_packets output[0]" + kThen, true) == "right");
}

TEST_CASE("explorer: a row function of a part of the sum, and of none") {
  CHECK(both("apply f residual[0], x[0] <- input[0], residual[0] ; sync\n"
             "reduce_packets output[0] <- x[0], slot[0]") == "wrong data");
  CHECK(both("reduce_packets output[0] <- input[0], slot[0]") == "wrong data");
  CHECK(both(kSum + "sync ; apply f residual[0], output[0] <- input[0], residual[0]") ==
        "wrong data");
}

TEST_CASE("explorer: the block meets before what it reads of a row, and after") {
  CHECK(both(kSum + "apply f residual[0], output[0] <- x[0], residual[0]") == "race");
  CHECK(both("reduce_packets x[0]" + kThen +
             "copy_packets t[0] <- x[0]\n"
             "unpack_packets output[0] <- t[0]") == "race");
  CHECK(both("reduce_packets x[0]" + kThen +
             "sync ; copy_packets t[0] <- x[0]\n"
             "unpack_packets output[0] <- t[0]") == "right");
}

/// By owner, of two ranks: `ops` follow what each has put into the other's slot. The rows that come
/// back are of a type of their own.
std::string both_typed(const std::string& ops) {
  const Program program = testing::as_written(R"(program t
row f(x: row T) {
  out q: row bf16 = x * 2
}
collective allreduce(ranks: 2, chunks: 2, columns: 8, then: f)
rank r in 0..2 {
  buffer slot[1] packets: LL16, copies: 2
  buffer rows[1] packets: LL16, type: bf16
  buffer x[1]
  channel ch = memory(1 - r)
  tb 0 {
    put_packets ch.slot[0] <- input[1 - r]
    reduce_packets x[0] <- input[r], slot[0]
    sync
)" + ops + "\n  }\n}\n");
  return both(program);
}

/// Rank 1 puts what rank 0 computes, too, where that stores it, in no order with it; the packets
/// that rank 0 waits for are complete only later.
std::string both_store(const std::string& ops) {
  return both(testing::as_written(R"(program t
row f(x: row T) {
  out y: row T = x * 2
}
collective allreduce(ranks: 2, columns: 8, then: f, inplace: false)
rank 0 {
  buffer slot[1] packets: LL16, copies: 2
  buffer x[1]
  channel ch = memory(1)
  tb 0 {
    put_packets ch.slot[0] <- input[0]
)" + ops + R"(
  }
  tb 1 { wait ch }
}
rank 1 {
  buffer slot[1] packets: LL16, copies: 2
  channel ch = memory(0)
  tb 0 {
    reduce_packets output[0] <- slot[0], input[0] then f _ <- _
    sync
    put ch.output[0] <- output[0]
    sync
    signal ch
    put_packets ch.slot[0] <- input[0]
  }
}
)"));
}

// Of these stores the first is of the sum on some machines, and the function is applied to what is
// there then.
TEST_CASE("explorer: a sum that lies where its result goes") {
  const std::string sum = "reduce_packets x[0] <- input[0], slot[0]";
  CHECK(both_store(sum + "\nsync\napply f output[0] <- x[0]") == "right");
  CHECK(both_store(sum + " then f _ <- _\nsync\ncopy output[0] <- x[0]") == "right");
  CHECK(both_store("reduce_packets output[0] <- input[0], slot[0] then f _ <- _") != "right");
}

TEST_CASE("explorer: rows of another type come back") {
  const std::string apply = "apply f output[r] <- x[0]\n";
  const std::string back =
      "put_packets ch.rows[0] <- output[r]\nunpack_packets output[1 - r] <- rows[0]";
  CHECK(both_typed(apply + "sync\n" + back) == "right");
  CHECK(both_typed(apply + back) == "race");
  CHECK(both_typed(apply + "sync\nput_packets ch.rows[0] <- output[r]\n"
                           "unpack_packets output[r] <- rows[0]") != "right");
}

}  // namespace mscclc
