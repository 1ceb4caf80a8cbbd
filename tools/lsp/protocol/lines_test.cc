#include "tools/lsp/protocol/lines.h"

#include <catch2/catch.hpp>

using namespace mscclc::lsp;

TEST_CASE("positions count UTF-16 code units") {
  // One byte, two (one unit), three (one unit), four (two units).
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\nb";
  const Lines lines(text);
  const size_t bytes[] = {0, 1, 3, 6, 10, 11};
  const uint32_t characters[] = {0, 1, 2, 3, 5, 6};
  for (size_t i = 0; i < std::size(bytes); ++i) {
    CHECK(lines.position(bytes[i]) == Position{0, characters[i]});
    CHECK(lines.byte({0, characters[i]}) == bytes[i]);
  }
  CHECK(lines.byte({0, 4}) == 6);  // within a pair: where the character begins
  CHECK(lines.position(12) == Position{1, 0});
}

TEST_CASE("positions beyond a line or the text are its end") {
  const Lines lines("ab\ncd");
  CHECK(lines.byte({0, 99}) == 2);
  CHECK(lines.byte({1, 99}) == 5);
  CHECK(lines.byte({7, 0}) == 5);
  CHECK(lines.byte({UINT32_MAX, UINT32_MAX}) == 5);
  CHECK(lines.position(99) == Position{1, 2});
}

TEST_CASE("all three line ends of the protocol end a line") {
  const Lines lines("a\r\nb\rc\n");
  CHECK(lines.position(3) == Position{1, 0});
  CHECK(lines.position(5) == Position{2, 0});
  CHECK(lines.byte({0, 9}) == 1);
  CHECK(lines.byte({1, 9}) == 4);
  CHECK(lines.position(7) == Position{3, 0});
}

TEST_CASE("lines and columns of the compiler become bytes") {
  const Lines lines("ab\ncd\n");
  CHECK(lines.byte_of(1, 1) == 0);
  CHECK(lines.byte_of(2, 2) == 4);
  CHECK(lines.byte_of(2, 50) == 5);
  CHECK(lines.byte_of(9, 1) == 6);
  CHECK(lines.byte_of(1, 0) == 0);
}

TEST_CASE("positions and ranges in JSON, and what is none") {
  const Range range{{1, 2}, {3, 4}};
  CHECK(range_of(to_json(range)) == range);
  CHECK_FALSE(position_of(Json::parse(R"({"line":1})")));
  CHECK_FALSE(position_of(Json::parse(R"({"line":-1,"character":0})")));
  CHECK_FALSE(position_of(Json::parse(R"({"line":4294967296,"character":0})")));
  CHECK_FALSE(range_of(Json::parse(R"({"start":{"line":1,"character":1}})")));
}
