// What is said of arguments of collectives by name that are wrong.
#include <catch2/catch.hpp>
#include <vector>

#include "runtime/api/collectives.h"
#include "tests/collectives/ranks_of_one_thread.h"

namespace mscclc {
namespace {

using testing::RanksOfOneThread;
using Kind = CollectiveKind;

TEST_CASE("arguments that are refused") {
  RanksOfOneThread ranks(2);
  int32_t memory[4] = {};
  const CollectiveCall right{
      .kind = Kind::reduce, .count = 1, .dtype = Dtype::i32, .input = memory, .output = memory};
  const auto said = [&](CollectiveCall call) {
    Diagnostics diagnostics;
    CHECK_FALSE(ranks.collectives[0]->check(call, diagnostics));
    CHECK_FALSE(ranks.collectives[0]->call(call, ranks.streams[0], diagnostics));
    CHECK(diagnostics.all().at(0).code == "bad-call");
    return diagnostics.all().at(0).message;
  };
  const auto with = [&](const auto& change) {
    CollectiveCall call = right;
    change(call);
    return said(call);
  };
  Diagnostics diagnostics;
  CHECK(ranks.collectives[0]->check(right, diagnostics));
  CHECK(with([](auto& c) { c.kind = Kind::custom; }) == "the collective cannot be called by name");
  CHECK(with([](auto& c) { c.kind = static_cast<Kind>(99); }) ==
        "the collective cannot be called by name");
  CHECK(with([](auto& c) { c.dtype = static_cast<Dtype>(99); }) ==
        "reduce: there is no such data type");
  CHECK(with([](auto& c) { c.accumulate = static_cast<Dtype>(99); }) ==
        "reduce: there is no such data type");
  CHECK(with([](auto& c) { c.op = ReduceOp::call; }) == "reduce: there is no such reduction");
  CHECK(with([](auto& c) { c.op = static_cast<ReduceOp>(99); }) ==
        "reduce: there is no such reduction");
  CHECK(with([](auto& c) { c.root = 2; }) == "reduce: the root is rank 2 of 2");
  CHECK(with([](auto& c) { c.count = ~uint64_t{0}; }) ==
        "reduce: 18446744073709551615 elements of 'i32' a rank are too many");
  CHECK(with([](auto& c) { c.input = nullptr; }) ==
        "reduce: rank 0 needs an input, but gives nullptr");
  CHECK(with([](auto& c) { c.kind = Kind::alltoallv; }) ==
        "alltoallv: 0 counts are given; 2 ranks need 4");
  const std::vector<uint64_t> counts = {1, 1, 1, 1}, three = {1, 2, 3}, far = {0, ~uint64_t{0}};
  CHECK(with([&](auto& c) {
          c.kind = Kind::alltoallv;
          c.counts = counts;
          c.input_offsets = three;
        }) == "alltoallv: 3 offsets are given; 2 ranks need 2");
  CHECK(with([&](auto& c) {
          c.kind = Kind::alltoallv;
          c.counts = counts;
          c.output_offsets = far;
        }) == "alltoallv: 18446744073709551615 elements of 'i32' a rank are too many");
  CHECK(with([&](auto& c) {
          c.kind = Kind::alltoallv;
          c.counts = counts;
          c.output = nullptr;
        }) == "alltoallv: rank 0 needs an output, but gives nullptr");
}

TEST_CASE("buffers overlap as they do in place, or not at all") {
  RanksOfOneThread ranks(2);
  int32_t memory[64] = {};
  const auto lies = [&](CollectiveCall call, int from, int to) {
    call.dtype = Dtype::i32;
    call.input = memory + from;
    call.output = memory + to;
    Diagnostics diagnostics;
    const bool good = ranks.collectives[0]->check(call, diagnostics);
    CHECK((good || diagnostics.all().at(0).code == "overlap"));
    return good;
  };
  const CollectiveCall sum{.kind = Kind::allreduce, .count = 8};
  CHECK(lies(sum, 0, 0));
  CHECK(lies(sum, 0, 8));
  CHECK_FALSE(lies(sum, 0, 7));  // though each of its pieces may lie apart
  CHECK_FALSE(lies(sum, 4, 0));
  const CollectiveCall gather{.kind = Kind::allgather, .count = 8};
  CHECK(lies(gather, 0, 0));
  CHECK_FALSE(lies(gather, 8, 0));  // where another rank's row is
  const CollectiveCall far{.kind = Kind::reduce, .count = 8, .root = 1};
  CHECK(lies(far, 0, 4));  // an output that is not its own
  CHECK_FALSE(lies({.kind = Kind::sendrecv, .count = 8}, 0, 0));
  const std::vector<uint64_t> equal = {2, 3, 3, 2}, longer = {2, 3, 4, 2}, gaps = {0, 8};
  CollectiveCall rows{.kind = Kind::alltoallv, .counts = equal};
  CHECK(lies(rows, 0, 0));
  CHECK(lies(rows, 0, 5));
  CHECK_FALSE(lies(rows, 0, 4));
  rows.input_offsets = rows.output_offsets = gaps;
  CHECK(lies(rows, 0, 4));  // in the gaps
  CHECK_FALSE(lies(rows, 0, 2 + 5));
  rows.counts = longer;
  CHECK_FALSE(lies(rows, 0, 0));
}

}  // namespace
}  // namespace mscclc
