// Symbols: the bits of two values differ, whatever random numbers were drawn.
#include "passes/prove/model/values.h"

#include <catch2/catch.hpp>
#include <vector>

namespace mscclc::proof {
namespace {

TEST_CASE("values that differ in one thing have other bits, whatever numbers were drawn") {
  for (int draw = 0; draw < 200; ++draw) {
    const Symbols symbols;
    const Symbol value = symbols.contribution(1, 2, 3);
    std::vector<Symbol> others(4, value);
    others[0].plus_zero = true;  // one bit, so it is lost first
    others[1].size = 1;
    others[2] = symbols.rounded(value, false);
    others[3] = symbols.contribution(1, 2, 4);
    for (const Symbol& other : others) CHECK(bits_of(other, 0) != bits_of(value, 0));
    CHECK(bits_of(value, 1) != bits_of(value, 0));
    CHECK(bits_of(value, 0) == bits_of(symbols.contribution(1, 2, 3), 0));
    CHECK(bits_of(value, 0) != 0);
    CHECK(bits_of(symbols.unknown(0), 0) == 0);
  }
}

}  // namespace
}  // namespace mscclc::proof
