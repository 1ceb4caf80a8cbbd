#include "compiler/mscclpp/runs.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

namespace mscclc::mscclpp {
namespace {

TEST_CASE("runs of chunks are the chunks") {
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    Runs runs;
    std::set<uint64_t> chunks;
    for (int j = 0; j < 20; ++j) {
      uint64_t first = random() % 60, last = random() % 60;
      if (first > last) std::swap(first, last);
      ++last;
      const auto found = chunks.lower_bound(first);
      CHECK(runs.has_any(first, last) == (found != chunks.end() && *found < last));
      runs.add(first, last);
      for (uint64_t chunk = first; chunk < last; ++chunk) chunks.insert(chunk);
    }
  }
}

TEST_CASE("a run may have billions of chunks") {
  Runs runs;
  runs.add(0, 1ULL << 40);
  CHECK(runs.has_any(1ULL << 39, (1ULL << 39) + 1));
  CHECK_FALSE(runs.has_any(1ULL << 40, 1ULL << 41));
}

}  // namespace
}  // namespace mscclc::mscclpp
