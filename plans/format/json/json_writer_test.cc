#include "plans/format/json/json_writer.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace mscclc {
namespace {

std::string written(JsonLayout layout) {
  std::string text;
  JsonOut out([&](std::string_view block) {
    text += block;
    return true;
  });
  JsonWriter json(out, layout);
  const std::vector<uint32_t> none, numbers = {1, 4000000000};
  json.object(
      "text", std::string("a\"b"), "flag", true, "letter", 'i', "none", [&] { json.list(none); },
      "numbers", [&] { json.list(numbers); }, "rows",
      [&] {
        json.list(numbers, [&](uint32_t number) {
          json.open('[');
          json.elements(number, int64_t{-1}, "x");
          json.close(']');
        });
      });
  out.flush();
  return text;
}

TEST_CASE("objects and lists, laid out as json.dumps() does") {
  CHECK(written({.indent = -1, .compact = true}) ==
        R"({"text":"a\"b","flag":true,"letter":"i","none":[],"numbers":[1,4000000000],)"
        R"("rows":[[1,-1,"x"],[4000000000,-1,"x"]]})");
  CHECK(written({}) ==
        R"({"text": "a\"b", "flag": true, "letter": "i", "none": [], "numbers": [1, 4000000000], )"
        R"("rows": [[1, -1, "x"], [4000000000, -1, "x"]]})");
  CHECK(written({.indent = 2}) == R"({
  "text": "a\"b",
  "flag": true,
  "letter": "i",
  "none": [],
  "numbers": [
    1,
    4000000000
  ],
  "rows": [
    [
      1,
      -1,
      "x"
    ],
    [
      4000000000,
      -1,
      "x"
    ]
  ]
})");
}

TEST_CASE("members with names that are not known beforehand") {
  std::string text;
  JsonOut out([&](std::string_view block) {
    text += block;
    return true;
  });
  JsonWriter json(out);
  json.open('{');
  json.member(std::string("a\n"), 1u);
  json.member("b", 2u);
  json.close('}');
  out.flush();
  CHECK(text == R"({"a\u000a":1,"b":2})");
}

}  // namespace
}  // namespace mscclc
