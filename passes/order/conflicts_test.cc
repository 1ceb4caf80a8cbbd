// How many earlier ops an op is compared with: what others settle is forgotten.
#include "passes/order/conflicts.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc {
namespace {

/// The most conflicts that any op of rank 0 finds, each being ordered after all of its own.
size_t most_conflicts(const std::string& text) {
  const Program program = testing::parse(text);
  order::Conflicts conflicts(program);
  conflicts.start(0);
  size_t most = 0;
  for (uint32_t op = 0; op < program.ranks[0].ops.size(); ++op) {
    most = std::max(most, conflicts.find(op).size());
    conflicts.record(op);
  }
  return most;
}

TEST_CASE("conflicts: a write settles all before it") {
  CHECK(most_conflicts(testing::two_ranks("tb 0 { for i in 0..50 { copy s[0] <- input[0] } }")) ==
        1);
}

// In place each does nothing, so it settles no op that does something; but those like itself.
TEST_CASE("conflicts: copies of a chunk onto itself settle one another") {
  CHECK(most_conflicts(testing::two_ranks("tb 0 { for i in 0..50 { copy output[0] <- input[0] } }",
                                          "", "allreduce(ranks: 2, chunks: 4)")) <= 2);
  const std::string with_reader = testing::two_ranks(
      "tb 0 { copy s[0] <- input[0] ; for i in 0..50 { copy output[0] <- input[0] } }\n"
      "tb 1 { reduce output[0] <- input[0], input[0] }");
  CHECK(most_conflicts(with_reader) >= 2);  // the copy to s, and one of the others
}

}  // namespace
}  // namespace mscclc
