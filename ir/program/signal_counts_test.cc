// What is known of givers: by numbers, and against all orders in which they may give.
#include "ir/program/signal_counts.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

using namespace mscclc;

TEST_CASE("one, none, or several") {
  Sole sole;
  CHECK_FALSE(sole.one());
  CHECK_FALSE(sole.several());
  sole.add(3);
  sole.add(3);
  CHECK(sole.one());
  CHECK(sole.who() == 3);
  sole.add(4);
  CHECK(sole.several());
  CHECK_FALSE(sole.one());
  sole.add(3);
  CHECK(sole.several());
}

// `certain` gives of a giver are over if it has given so many in every order of gives that lets
// `taken` be taken.
TEST_CASE("what is certain is so in every order, and all that is so is certain") {
  for (uint32_t initial = 0; initial < 3; ++initial) {
    for (uint32_t first = 1; first < 4; ++first) {
      for (uint32_t second = 1; second < 4; ++second) {
        for (uint32_t taken = 0; taken <= initial + first + second; ++taken) {
          std::vector<uint32_t> givers(first, 0);
          givers.resize(first + second, 1);
          const uint32_t given = taken > initial ? taken - initial : 0;  // at least
          uint32_t least = first;
          do {
            const auto begin = givers.begin();
            least = std::min<uint32_t>(least, std::count(begin, begin + given, 0u));
          } while (std::next_permutation(givers.begin(), givers.end()));
          INFO(initial << " " << first << " " << second << " " << taken);
          CHECK(certain_gives(taken, initial, first + second, first) == least);
        }
      }
    }
  }
}
