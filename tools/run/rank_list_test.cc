#include "tools/run/rank_list.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

using Ranks = std::vector<uint32_t>;

std::string error_of(std::string_view text) {
  const auto split = split_ranks(text);
  return split ? "fine" : split.error().text();
}

FileOfRanks split(std::string_view text) {
  const auto named = split_ranks(text);
  REQUIRE(named);
  return *named;
}

}  // namespace

TEST_CASE("ranks after a file's name") {
  CHECK(split("a.json@0,1").file == "a.json");
  CHECK(split("a.json@0,1").ranks == Ranks{0, 1});
  CHECK(split("a.json@7").ranks == Ranks{7});
  CHECK(split("a.json@4..7,1").ranks == Ranks{4, 5, 6, 1});
}

TEST_CASE("names that are only names") {
  for (const char* name : {"a.json", "-", "me@home.json", "a@", "@0", ""}) {
    CHECK(split(name).file == name);
    CHECK(split(name).ranks.empty());
  }
}

TEST_CASE("lists that are none") {
  for (const char* text : {"a@1,", "a@,1", "a@1..", "a@..", "a@3..3", "a@3..2", "a@1...3", "a@.",
                           "a@99999999999", "a@65537", "a@0..65537"}) {
    CHECK(error_of(text) ==
          "'" + std::string(text) + "': expected ranks after '@', as in 0,1 or 0..4");
  }
  CHECK(error_of("a@1,0..2") == "'a@1,0..2' names a rank twice");
}

}  // namespace mscclc
