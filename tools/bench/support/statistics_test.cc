#include "tools/bench/support/statistics.h"

#include <catch2/catch.hpp>

namespace mscclc::bench {
namespace {

TEST_CASE("the median of an odd number of values is the one in the middle") {
  CHECK(quantile({5, 1, 3}, 0.5) == 3);
  CHECK(quantile({9, 1, 2, 3, 4, 5, 6, 7, 8}, 0.5) == 5);
}

TEST_CASE("the 99th percentile of few values is the largest") {
  CHECK(quantile({1, 7, 3}, 0.99) == 7);
  CHECK(quantile({4}, 0.99) == 4);
}

TEST_CASE("the 99th percentile of a hundred values leaves out one") {
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);
  CHECK(quantile(values, 0.99) == 99);
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 1) == 100);
}

TEST_CASE("the slowest rank of each repeat counts") {
  CHECK(slowest({{1, 5, 2}, {3, 4, 2}}) == std::vector<double>{3, 5, 2});
}

TEST_CASE("a call costs what is left without the work beside it") {
  CHECK(added_cost({7, 9}, {11, 14}) == std::vector<double>{3, 4});
  CHECK(added_cost({}, {}).empty());
}

}  // namespace
}  // namespace mscclc::bench
