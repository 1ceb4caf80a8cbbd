#include "compiler/builder/draft/texts.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace mscclc;

TEST_CASE("messages count things, and how often") {
  CHECK(counted(1, "chunk") == "1 chunk");
  CHECK(counted(0, "chunk") == "0 chunks");
  CHECK(times(0) == "never");
  CHECK(times(1) == "once");
  CHECK(times(2, true) == "twice");
  CHECK(times(3) == "3 times");
  CHECK(times(3, true) == "three times");
  CHECK(times(10, true) == "10 times");
}

TEST_CASE("messages show lists, long ones shortened") {
  const std::vector<int64_t> some = {4, 2, 7};
  CHECK(list_text(List::stored(some)) == "[4, 2, 7]");
  CHECK(list_text(List::range(0, 0)) == "[]");
  CHECK(list_text(List::range(0, 40)) == "[0, 1, 2, 3, 4, 5, 6, 7, ..., 39]");
  CHECK(blocks_text(List::range(0, 4)) == "0..4");
  CHECK(blocks_text(List::range(3, 4)) == "[3]");
  CHECK(blocks_text(List::stored(some)) == "[4, 2, 7]");
}
