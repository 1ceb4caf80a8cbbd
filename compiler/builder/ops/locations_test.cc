#include "compiler/builder/ops/locations.h"

#include <catch2/catch.hpp>

#include "compiler/builder/ops/two_ranks.h"

using namespace mscclc;

TEST_CASE("a site is kept once") {
  TwoRanks two;
  const uint32_t a = two.locations.site_id({0, 3, 1, {}});
  CHECK(two.locations.site_id({0, 4, 1, {}}) != a);
  CHECK(two.locations.site_id({0, 3, 1, {}}) == a);
  CHECK(two.draft.program.sites.size() == 2);
}

TEST_CASE("all ops of one place share its location") {
  TwoRanks two;
  two.locations.at_call({{"r", 1}}, "tree.cc", 12);
  const Slice first = two.locations.present();
  CHECK(first.count == 1);
  CHECK(two.locations.present().first == first.first);
  CHECK(two.draft.program.files == std::vector<std::string>{"tree.cc"});
  CHECK(two.draft.program.sites.at(0).line == 12);
  two.locations.at_locations({});
  CHECK(two.locations.present().count == 0);
}
