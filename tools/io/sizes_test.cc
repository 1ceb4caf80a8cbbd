// Sizes and ranges of sizes from the command line.
#include "tools/io/sizes.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

using List = std::vector<uint64_t>;

List sizes(std::string_view text) {
  const auto list = parse_sizes(text);
  INFO((list ? "" : list.error().text()));
  REQUIRE(list);
  return *list;
}

std::string error_of(std::string_view text) {
  const auto list = parse_sizes(text);
  return list ? "a list" : list.error().text();
}

TEST_CASE("a size has a 1024-based suffix") {
  CHECK(parse_bytes("0") == 0u);
  CHECK(parse_bytes("7") == 7u);
  CHECK(parse_bytes("64K") == 65536u);
  CHECK(parse_bytes("64k") == 65536u);
  CHECK(parse_bytes("1MiB") == 1048576u);
  CHECK(parse_bytes("5G") == 5368709120u);
  CHECK(parse_bytes("18446744073709551615") == ~uint64_t{0});
}

TEST_CASE("what is no size is refused") {
  for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "1.5K", "1KB", "1T", "0x10",
                           "18446744073709551616", "17179869184G"}) {
    INFO(text);
    CHECK_FALSE(parse_bytes(text).has_value());
  }
}

TEST_CASE("lists and ranges") {
  CHECK(sizes("64K") == List{65536});
  CHECK(sizes("1,2,0") == List{1, 2, 0});
  CHECK(sizes("1K:8K") == List{1024, 2048, 4096, 8192});
  CHECK(sizes("1K:1M:4") == List{1024, 4096, 16384, 65536, 262144, 1048576});
  CHECK(sizes("1:10:3") == List{1, 3, 9});
  CHECK(sizes("0:6:+2") == List{0, 2, 4, 6});
  CHECK(sizes("1K:4K:+2K,5") == List{1024, 3072, 5});
  CHECK(sizes("1M:1M:4") == List{1048576});
  CHECK(sizes("0:0:2") == List{0});
}

TEST_CASE("a range near the largest number ends") {
  CHECK(sizes("9223372036854775808:18446744073709551615:2") == List{9223372036854775808u});
  CHECK(sizes("18446744073709551614:18446744073709551615:+1").size() == 2);
}

TEST_CASE("hostile ranges say what is wrong") {
  for (const std::string range :
       {"1:1M:1", "1:1M:0", "1K:1K:0", "1K:1K:1", "1K:1K:+0", "0:0:0", "0:1M:+0"}) {
    CHECK(error_of(range) == "the range '" + range + "' does not grow");
  }
  CHECK(error_of("1K:0:1") == "the range '1K:0:1' ends before it begins");
  CHECK(error_of("0:1M:4") == "the range '0:1M:4' begins at 0, which no factor can leave");
  CHECK(error_of("0:1:18446744073709551616") ==
        "'18446744073709551616' is neither a factor nor a step such as '+1K'");
  CHECK(error_of("1:2:3:4") == "'1:2:3:4' has more than three parts");
  CHECK(error_of("1::2") == "'' is not a size such as 512, 64K or 1M");
  CHECK(error_of("1,,2") == "'' is not a size such as 512, 64K or 1M");
  CHECK(error_of("1:2:x") == "'x' is neither a factor nor a step such as '+1K'");
  CHECK(error_of("0:1G:+1") == "more than 10000 sizes");
}

}  // namespace
}  // namespace mscclc
