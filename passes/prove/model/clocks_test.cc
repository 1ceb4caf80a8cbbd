#include "passes/prove/model/clocks.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace mscclc::proof {
namespace {

constexpr uint32_t kPage = 1u << ClockLayout::kMaxBits;

/// A row that knows something of a few columns of each page.
Row sample(const ClockLayout& layout) {
  Row row;
  for (uint32_t p = 1; p < layout.width; p += 37) row.raise(p, p + 1, layout);
  return row;
}

/// Is `turned` what `row` becomes when its columns move by so many?
bool is_turned(const Row& row, const Row& turned, uint32_t by, uint32_t width) {
  for (uint32_t p = 0; p < width; ++p) {
    if (turned[(p + by) % width] != row[p]) return false;
  }
  return true;
}

TEST_CASE("a row turns by whole pages, be they large or small") {
  for (uint32_t bits = ClockLayout::kLeastBits; bits <= ClockLayout::kMaxBits; ++bits) {
    const ClockLayout layout{5u << bits, bits};
    const Row row = sample(layout);
    for (uint32_t pages = 0; pages < 5; ++pages) {
      const uint32_t by = pages << bits;
      INFO(layout.width << " columns by " << by);
      const Row turned = row.rotated(by, layout);
      CHECK(is_turned(row, turned, by, layout.width));
      CHECK(turned.same(row) == (pages == 0));
      const Row back = turned.rotated((layout.width - by) % layout.width, layout);
      CHECK(back.same(row));
      Row joined = row;
      joined.join(turned, layout);
      for (uint32_t p = 0; p < layout.width; ++p) {
        REQUIRE(joined[p] == std::max(row[p], turned[p]));
      }
    }
  }
  CHECK(Row().rotated(kPage, {2 * kPage})[0] == 0);
}

TEST_CASE("a row that has been turned changes alone") {
  const ClockLayout layout{2 * kPage};
  const Row row = sample(layout);
  Row turned = row.rotated(kPage, layout);
  const uint32_t before = row[1];
  turned.raise(1 + kPage, 1000, layout);
  CHECK(turned[1 + kPage] == 1000);
  CHECK(row[1] == before);
}

TEST_CASE("rows that have learned the same on different ways stay apart when one learns more") {
  const ClockLayout layout{2 * kPage};
  Row a = sample(layout), b = sample(layout);
  const Row same = a;
  a.join(b, layout);  // they may hold the same pages from here on
  b.raise(5, 99, layout);
  CHECK(b[5] == 99);
  CHECK(a[5] == 0);
  CHECK(same[5] == 0);
  a.join(b, layout);
  CHECK(a[5] == 99);
  CHECK(same[5] == 0);
  CHECK(is_turned(b, a, 0, layout.width));
}

}  // namespace
}  // namespace mscclc::proof
