// Which ranks a graph of waits blames.
#include "runtime/bootstrap/wait_graph.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

struct TestGraph : WaitGraph {
  explicit TestGraph(uint32_t ranks) : WaitGraph(ranks) {
    for (uint32_t r = 0; r < ranks; ++r) names.push_back(fmt::format("rank {} (here)", r));
  }
  void waits(uint32_t rank, const std::vector<uint32_t>& awaited) {
    answer(rank);
    report(rank, {awaited, "it waited"});
  }
  std::string text() const { return verdict(names); }
  std::vector<std::string> names;
};

TEST_CASE("a rank that does not answer is to blame for all that wait for one another after it") {
  TestGraph graph(4);
  graph.waits(0, {3});
  graph.waits(1, {0});
  graph.answer(2);
  graph.waits(2, {1, 0});
  CHECK_FALSE(graph.complete());
  CHECK(graph.text() ==
        "rank 3 (here) does not answer; rank 0 waits for it\n"
        "rank 0 waits for rank 3: it waited\n"
        "rank 1 waits for rank 0: it waited\n"
        "rank 2 waits for ranks 0 and 1: it waited\n"
        "rank 3 does not answer");
}

TEST_CASE("a silent rank goes before one that lives") {
  TestGraph graph(3);
  graph.waits(0, {1, 2});
  graph.answer(1);
  CHECK(graph.text().starts_with("rank 2 (here) does not answer; rank 0 waits for it\n"));
}

TEST_CASE("several silent ranks") {
  TestGraph graph(4);
  graph.waits(0, {2, 3});
  graph.waits(1, {3});
  CHECK(graph.text().starts_with("ranks 2 and 3 do not answer; ranks 0 and 1 wait for them\n"));
}

TEST_CASE("a rank that lives and waits for no other has not sent what others wait for") {
  TestGraph graph(2);
  graph.waits(0, {1});
  SECTION("it is elsewhere") {
    graph.elsewhere(1, "is at 'load a plan'");
    CHECK(graph.complete());
    CHECK(graph.text() ==
          "rank 1 (here) has not sent what rank 0 waits for\n"
          "rank 0 waits for rank 1: it waited\n"
          "rank 1 is at 'load a plan'");
  }
  SECTION("its waits are within it") {
    graph.waits(1, {});
    CHECK(graph.text() ==
          "rank 1 (here) has not sent what rank 0 waits for\n"
          "rank 0 waits for rank 1: it waited\n"
          "rank 1 waits for no other rank");
  }
}

TEST_CASE("ranks that wait for one another") {
  TestGraph graph(3);
  graph.waits(0, {1});
  graph.waits(1, {0});
  graph.waits(2, {0});
  CHECK(graph.complete());
  CHECK(graph.text().starts_with("ranks 0 and 1 wait for one another\n"));
}

TEST_CASE("waits within one rank, and ranks that there are not") {
  TestGraph graph(2);
  graph.waits(1, {1, 7});
  graph.elsewhere(0, "has left");
  CHECK(graph.text() == "rank 1: it waited\nrank 0 has left");
}

TEST_CASE("many ranks make no endless text") {
  TestGraph graph(1000);
  for (uint32_t r = 1; r < 1000; ++r) graph.waits(r, {0});
  CHECK(graph.text().size() < 2000);
  CHECK(graph.text().ends_with("\nand 988 ranks more"));
}

TEST_CASE("lists of ranks") {
  CHECK(list_ranks({3}) == "rank 3");
  CHECK(list_ranks({0, 2}) == "ranks 0 and 2");
  std::vector<uint32_t> many(100);
  for (uint32_t r = 0; r < 100; ++r) many[r] = r;
  CHECK(list_ranks(many) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 92 more");
}

}  // namespace
}  // namespace mscclc
