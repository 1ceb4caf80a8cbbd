#include "plans/format/json/json_out.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>

namespace mscclc {
namespace {

template <class Write>
std::string written(Write write) {
  std::string text;
  JsonOut out([&](std::string_view block) {
    text += block;
    return true;
  });
  write(out);
  out.flush();
  return text;
}

std::string number(uint32_t value) {
  return written([&](JsonOut& out) {
    out.need(10);
    out.number(value);
  });
}

}  // namespace

TEST_CASE("numbers of all lengths") {
  for (uint32_t value = 0; value < 20000; ++value) CHECK(number(value) == std::to_string(value));
  for (const uint32_t value : {99999u, 100000u, 1234567890u, 4294967295u}) {
    CHECK(number(value) == std::to_string(value));
  }
  const auto integer = [](int64_t value) {
    return written([&](JsonOut& out) {
      out.need(24);
      out.integer(value);
    });
  };
  CHECK(integer(-7) == "-7");
  CHECK(integer(std::numeric_limits<int64_t>::min()) == "-9223372036854775808");
  CHECK(integer(std::numeric_limits<int64_t>::max()) == "9223372036854775807");
}

TEST_CASE("strings are escaped") {
  const auto string = [](std::string_view text) {
    return written([&](JsonOut& out) { out.string(text); });
  };
  CHECK(string("a\"b\\c\n\x01") == "\"a\\\"b\\\\c\\u000a\\u0001\"");
  CHECK(string("é€😀\x7f") == "\"é€😀\x7f\"");
}

TEST_CASE("text is passed on in blocks and counted") {
  std::string text;
  size_t blocks = 0;
  JsonOut out([&](std::string_view block) {
    ++blocks;
    text += block;
    return true;
  });
  const std::string line(1000, 'x');
  for (int i = 0; i < 100; ++i) out.text(line);
  CHECK(out.written() == 100000);
  out.flush();
  CHECK(text == std::string(100000, 'x'));
  CHECK(blocks == 100000 / JsonOut::kBlock + 1);
}

TEST_CASE("a sink that refuses gets nothing more") {
  int calls = 0;
  JsonOut out([&](std::string_view) {
    ++calls;
    return false;
  });
  out.text(std::string(3 * JsonOut::kBlock, 'x'));
  out.flush();
  CHECK(calls == 1);
  CHECK(out.stopped());
}

TEST_CASE("text that is not UTF-8 is noticed") {
  for (const char* right :
       {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf"}) {
    CHECK(is_utf8(right));
  }
  for (const char* wrong : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                            "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe2\x82"}) {
    CHECK_FALSE(is_utf8(wrong));
  }
  JsonOut out([](std::string_view) { return true; });
  out.string("\xff");
  CHECK(out.bad_text());
}

}  // namespace mscclc
