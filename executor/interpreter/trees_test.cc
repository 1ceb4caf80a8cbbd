#include "executor/interpreter/trees.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace mscclc::device {
namespace {

/// "((0 1) 2)": T(a, b), by the definition.
std::string tree_text(uint32_t a, uint32_t b) {
  if (b - a == 1) return std::to_string(a);
  const uint32_t middle = a + first_of_tree(b - a);
  return "(" + tree_text(a, middle) + " " + tree_text(middle, b) + ")";
}

TEST_CASE("a walk over the sources is the tree") {
  size_t most = 0;
  for (uint32_t n = 1; n <= kMaxTreeSources; ++n) {
    std::vector<std::string> parts(kMaxTreeParts);
    TreeWalk walk;
    const auto merge = [&](uint32_t i) {
      REQUIRE(i + 1 < kMaxTreeParts);
      parts[i] = "(" + parts[i] + " " + parts[i + 1] + ")";
    };
    for (uint32_t k = 0; k < n; ++k) {
      const std::string source = std::to_string(k);
      walk.take(
          [&](uint32_t i) {
            REQUIRE(i < kMaxTreeParts);
            parts[i] = source;
            most = std::max<size_t>(most, i + 1);
          },
          [&](uint32_t i) { parts[i] = "(" + parts[i] + " " + source + ")"; }, merge);
    }
    walk.finish(merge);
    REQUIRE(parts[0] == tree_text(0, n));
  }
  CHECK(most == kMaxTreeParts);
}

TEST_CASE("trees of few sources are lines") {
  std::string line = "0";
  for (uint32_t n = 1; n <= kMaxTreeInLine; ++n) {
    CHECK(tree_text(0, n) == line);
    line = "(" + line + " " + std::to_string(n) + ")";
  }
  CHECK(tree_text(0, kMaxTreeInLine + 1) != line);
}

}  // namespace
}  // namespace mscclc::device
