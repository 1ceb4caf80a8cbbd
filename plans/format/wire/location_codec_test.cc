#include "plans/format/wire/location_codec.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>

#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

using testing::TestProgram;

/// A program of one rank with locations on its ops: {site, values} lists, one per op.
struct Located {
  TestProgram t{1, 1};
  Located() {
    t.site(0, 1, 1);
    t.site(0, 2, 1, {"r"});
    t.site(0, 3, 1, {"r", "p"});
  }
  void op(std::vector<std::pair<uint32_t, std::vector<int64_t>>> locations) {
    Op& op = t.op_in(0, 0, OpKind::sync, {});
    for (auto& [site, values] : locations) t.located(op, site, values);
  }
  /// The encoded list; `bytes` of the plan are sure.
  std::string encode(uint64_t bytes = 1000) {
    std::string text;
    JsonOut out([&](std::string_view block) {
      text += block;
      return true;
    });
    LocationWriter writer(t.program, out);
    writer.begin_rank(bytes);
    for (const Op& op : t.program.ranks[0].ops) writer.op(op);
    out.flush();
    return text;
  }
};

/// Reads a list back into a program with the same sites and ops. Returns what is wrong, or "".
std::string decode(Program& program, const std::string& list, uint64_t bytes = 1000) {
  for (Op& op : program.ranks[0].ops) op.locations = {};
  LocationReader reader(program, bytes);
  reader.begin_rank(program.ranks[0].ops);
  std::stringstream in(list);
  for (std::string number; std::getline(in, number, ',');) {
    if (const char* wrong = reader.take(std::stoll(number))) return wrong;
  }
  const char* wrong = reader.end();
  return wrong != nullptr ? wrong : "";
}

}  // namespace

TEST_CASE("values that stay are left out") {
  Located l;
  l.op({});
  l.op({{0, {}}});
  l.op({{1, {4}}});
  l.op({{2, {4, 7}}});
  l.op({{2, {4, 7}}});
  l.op({{2, {5, 7}}});
  CHECK(l.encode() == "0,1,0,2,1,4,3,1,7,3,0,3,2,5,7,");
}

TEST_CASE("several locations of an op, in runs where they go up evenly") {
  Located l;
  l.op({{2, {0, 1}}, {2, {0, 2}}, {2, {0, 3}}, {2, {0, 7}}, {1, {0}}});
  l.op({{2, {0, 7}}, {2, {0, 5}}, {2, {0, 3}}});
  CHECK(l.encode() == "3,2,0,1,-3,-1,2,1,-3,1,7,-2,0,3,0,-3,-1,2,-2,");
}

TEST_CASE("what is encoded is decoded") {
  Located l;
  l.op({{2, {0, 1}}, {2, {0, 2}}, {2, {0, 3}}, {2, {0, 7}}, {1, {-3}}});
  l.op({});
  l.op({{2, {INT64_MIN, INT64_MAX}}, {2, {INT64_MIN, INT64_MIN}}, {2, {INT64_MIN, INT64_MIN + 1}}});
  const std::string list = l.encode();
  Located copy = l;
  CHECK(decode(copy.t.program, list).empty());
  CHECK(copy.encode() == list);
}

TEST_CASE("a plan too small for what it leaves out writes everything") {
  Located l;
  l.op({{2, {0, 1}}, {2, {0, 2}}, {2, {0, 3}}});
  const std::string list = l.encode(1);
  CHECK(list == "3,2,0,1,-3,1,2,-3,1,3,");  // two values left out of a budget of four
  CHECK(decode(l.t.program, list, 1).empty());
  CHECK(decode(l.t.program, "3,2,0,1,-3,-1,2,1", 1) ==
        "more locations than a plan of this size can have");
}

TEST_CASE("of a run that is too long as much is written as can be afforded") {
  Located l;
  l.op({{2, {0, 1}}, {2, {0, 2}}, {2, {0, 3}}, {2, {0, 4}}, {2, {0, 5}}});
  const std::string list = l.encode(2);
  CHECK(list == "3,2,0,1,-3,-1,2,1,-3,1,4,-3,1,5,");
  CHECK(decode(l.t.program, list, 2).empty());
}

}  // namespace mscclc
