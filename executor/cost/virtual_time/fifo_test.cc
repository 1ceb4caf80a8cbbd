// What is pushed comes out in that order, whatever was taken in between.
#include "executor/cost/virtual_time/fifo.h"

#include <catch2/catch.hpp>
#include <memory>

namespace mscclc::cost {

TEST_CASE("a fifo gives what it got in order") {
  Fifo<std::unique_ptr<int>> fifo;
  CHECK(fifo.empty());
  int in = 0, out = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < round % 7; ++i) fifo.push(std::make_unique<int>(in++));
    for (int i = 0; i < round % 5 && !fifo.empty(); ++i) CHECK(*fifo.take() == out++);
  }
  REQUIRE(!fifo.empty());
  CHECK(*fifo.front() == out);
  int seen = out;
  for (const auto& thing : fifo) CHECK(*thing == seen++);
  CHECK(seen == in);
  while (!fifo.empty()) CHECK(*fifo.take() == out++);
  CHECK(out == in);
}

}  // namespace mscclc::cost
