// runtime/ has few rooms, and few arrows between them; the numbers are printed. What a program
// links that needs only some of the rooms is in tests/runtime/ready_plans_test.sh.
#include "tests/structure/room_graph.h"

#include <catch2/catch.hpp>
#include <cstdio>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

constexpr size_t kRooms = 8, kFloors = 5, kArrows = 22;

using Arrows = std::map<std::pair<std::string, std::string>, int>;

TEST_CASE("runtime/ has at most 8 rooms, 5 floors and 22 arrows") {
  const RoomGraph graph = room_graph("runtime", sources());
  std::fputs(text_of("runtime", graph).c_str(), stdout);
  REQUIRE(graph.rooms.contains("core"));
  CHECK(graph.rooms.size() <= kRooms);
  REQUIRE(floors(graph).has_value());
  CHECK(*floors(graph) <= kFloors);
  CHECK(graph.arrows.size() <= kArrows);
}

TEST_CASE("doors include what applications include, and the support") {
  const RoomGraph graph = room_graph("runtime", sources());
  for (const auto& [arrow, lines] : graph.arrows) {
    if (arrow.first == "doors") CHECK((arrow.second == "api" || arrow.second == "support"));
  }
}

TEST_CASE("an arrow is an include from another room") {
  const RoomGraph graph =
      room_graph("runtime", {{"runtime/core/a/a.cc",
                              "#include \"runtime/core/b/b.h\"\n#include \"runtime/api/c.h\"\n"
                              "#include \"ir/api/d.h\"\n// #include \"runtime/doors/e.h\"\n"},
                             {"runtime/core/b/b.h", "#include \"runtime/api/c.h\"\n"},
                             {"runtime/core/b/b_test.cc", "#include \"runtime/doors/e.h\"\n"},
                             {"runtime/api/c.h", ""},
                             {"runtime/doors/e.h", "#include \"runtime/core/b/b.h\"\n"},
                             {"tests/runtime/f/f.cc", "#include \"runtime/api/c.h\"\n"}});
  CHECK(graph.rooms == std::set<std::string>{"api", "core", "doors"});
  CHECK(graph.arrows == Arrows{{{"core", "api"}, 2}, {{"doors", "core"}, 1}});
  CHECK(floors(graph) == 3);
  CHECK(
      text_of("runtime", graph) ==
      "runtime: 3 rooms, 3 floors, 2 arrows\n  core -> api (2 lines)\n  doors -> core (1 lines)\n");
}

TEST_CASE("rooms that include one another are a circle") {
  const RoomGraph graph = room_graph("x", {{"x/a/a.h", "#include \"x/b/b.h\"\n"},
                                           {"x/b/b.h", "#include \"x/c/c.h\"\n"},
                                           {"x/c/c.h", "#include \"x/b/b.h\"\n"}});
  CHECK(!floors(graph));
  CHECK(text_of("x", graph).starts_with("x: 3 rooms, a circle, 3 arrows\n"));
}

TEST_CASE("rooms without arrows are one floor") {
  CHECK(floors(room_graph("x", {{"x/a/a.h", ""}, {"x/b/b.h", ""}})) == 1);
}

}  // namespace
}  // namespace mscclc::structure
