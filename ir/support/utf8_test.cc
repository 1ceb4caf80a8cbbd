#include "ir/support/utf8.h"

#include <catch2/catch.hpp>

namespace mscclc {

TEST_CASE("bytes of a character of UTF-8") {
  CHECK(utf8_length("a\x80") == 1);
  CHECK(utf8_length("\xc2\x80z") == 2);
  CHECK(utf8_length("\xe0\xa0\x80") == 3);
  CHECK(utf8_length("\xed\x9f\xbf") == 3);
  CHECK(utf8_length("\xf4\x8f\xbf\xbf") == 4);
}

TEST_CASE("what is no character of UTF-8") {
  for (const std::string_view text :
       {"\x80", "\xc1\x80", "\xc2", "\xc2z", "\xe0\x9f\x80", "\xed\xa0\x80", "\xe1\x80",
        "\xf0\x8f\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    CAPTURE(text);
    CHECK(utf8_length(text) == 0);
  }
}

}  // namespace mscclc
