#include "compiler/mscclpp/number_map.h"

#include <catch2/catch.hpp>
#include <random>
#include <unordered_map>

namespace mscclc::mscclpp {
namespace {

TEST_CASE("a map of numbers keeps the first value of a key") {
  std::mt19937_64 random(5);
  NumberMap map;
  std::unordered_map<uint64_t, uint32_t> expected;
  for (uint32_t i = 0; i < 20000; ++i) {
    const uint64_t key = (random() % 100) << 32 | random() % 100;
    const bool is_new = expected.try_emplace(key, i).second;
    REQUIRE(map.try_emplace(key, i) == std::pair(expected[key], is_new));
  }
}

}  // namespace
}  // namespace mscclc::mscclpp
