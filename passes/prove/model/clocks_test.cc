#include "passes/prove/model/clocks.h"

#include <catch2/catch.hpp>

namespace mscclc::proof {
namespace {

constexpr uint32_t kPage = ClockPage::kColumns;

/// A row that knows something of a few columns of each page.
Row sample(uint32_t width) {
  Row row;
  for (uint32_t p = 1; p < width; p += 37) row.raise(p, p + 1, width);
  return row;
}

/// Is `turned` what `row` becomes when its columns move by so many?
bool is_turned(const Row& row, const Row& turned, uint32_t by, uint32_t width) {
  for (uint32_t p = 0; p < width; ++p) {
    if (turned[(p + by) % width] != row[p]) return false;
  }
  return true;
}

TEST_CASE("a row turns by whole pages and by parts of them") {
  for (const uint32_t width : {4 * kPage, 4 * kPage - 3}) {
    const Row row = sample(width);
    for (const uint32_t by : {uint32_t{0}, kPage, 3 * kPage, uint32_t{1}, kPage + 5, width - 1}) {
      INFO(width << " columns by " << by);
      CHECK(is_turned(row, row.rotated(by, width), by, width));
    }
  }
  CHECK(Row().rotated(kPage, 2 * kPage)[0] == 0);
}

TEST_CASE("a row that has been turned changes alone") {
  const uint32_t width = 2 * kPage;
  const Row row = sample(width);
  Row turned = row.rotated(kPage, width);
  const uint32_t before = row[1];
  turned.raise(1 + kPage, 1000, width);
  CHECK(turned[1 + kPage] == 1000);
  CHECK(row[1] == before);
}

TEST_CASE("rows that have learnt the same on different ways stay apart when one learns more") {
  const uint32_t width = 2 * kPage;
  Row a = sample(width), b = sample(width);
  const Row same = a;
  a.join(b, width);  // they may hold the same pages from here on
  b.raise(5, 99, width);
  CHECK(b[5] == 99);
  CHECK(a[5] == 0);
  CHECK(same[5] == 0);
  a.join(b, width);
  CHECK(a[5] == 99);
  CHECK(same[5] == 0);
  CHECK(is_turned(b, a, 0, width));
}

}  // namespace
}  // namespace mscclc::proof
