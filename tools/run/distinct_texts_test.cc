#include "tools/run/distinct_texts.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

TEST_CASE("texts that differ in numbers are said once, with the ranks") {
  DistinctTexts said;
  CHECK(said.add(0, "error: no room for 12 bytes\n") == "error: no room for 12 bytes\n");
  CHECK(said.add(1, "error: no room for 12 bytes\n").empty());
  CHECK(said.add(2, "error: no room for 4096 bytes\n").empty());
  CHECK(said.add(3, "error: no room for 7 bytes\n").empty());
  CHECK(said.ranks_left_out() == "note: ranks 2, 3 say the same as rank 0, with other numbers\n");
}

TEST_CASE("what is no error of one line is said by each rank") {
  DistinctTexts said;
  for (const std::string rank : {"0", "1"}) {
    const std::string hang = "error: a hang\nx.mscl:1:1: note: rank " + rank + " waits\n";
    const std::string log = "INFO LOAD executable of rank " + rank + "\n";
    CHECK(said.add(rank == "0" ? 0 : 1, hang) == hang);
    CHECK(said.add(rank == "0" ? 0 : 1, log) == log);
  }
  CHECK(said.add(2, "INFO LOAD executable of rank 1\n").empty());
  CHECK(said.ranks_left_out().empty());
}

TEST_CASE("other words are said, and equal texts need no note") {
  DistinctTexts said;
  CHECK(said.add(0, "error: rank 1 has died\n") == "error: rank 1 has died\n");
  CHECK(said.add(2, "error: rank 1 has died\n").empty());
  CHECK(said.add(3, "error: rank 1 has left\n") == "error: rank 1 has left\n");
  CHECK(said.ranks_left_out().empty());
  CHECK(said.add(4, "error: rank 7 has left\n").empty());
  CHECK(said.ranks_left_out() == "note: rank 4 says the same as rank 3, with other numbers\n");
}

}  // namespace
}  // namespace mscclc
