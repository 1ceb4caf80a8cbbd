#include "tools/lsp/language/values.h"

#include <catch2/catch.hpp>
#include <sstream>

using namespace mscclc;
using namespace mscclc::lsp;

namespace {

/// The values of the first name of that text.
std::string values(const std::string& program, const std::string& name,
                   const Defines& defines = {}) {
  const auto tree = read_tree("a.mscl", program, {});
  REQUIRE(tree != nullptr);
  const Names names(*tree);
  for (const Declared& d : names.all()) {
    if (tree->ast.text(d.symbol) == name) return values_of(*tree, names, d, defines);
  }
  return "no such name";
}

const std::string kNested =
    "param R = 4, F = LL16, L = [1, 2]\n"
    "let twice(x) = 2 * x\n"
    "let all = [twice(i) for i in 0..R]\n"
    "collective allgather(ranks: R)\n"
    "rank r in 0..R {\n"
    "  let others = 0..R except r, next = (r + 1) % R\n"
    "  buffer s[others] packets: F\n"
    "  for p in others where p > 1 { let sum = p + r\n copy s[p] <- input }\n"
    "  if r == 0 { let only = 1 / (1 - r) } else { let rest = 12 / r }\n"
    "  copy output[0] <- input[0]\n"
    "}\n";

}  // namespace

TEST_CASE("values: parameters, with what -D says") {
  CHECK(values(kNested, "R") == "4");
  CHECK(values(kNested, "F") == "LL16");
  CHECK(values(kNested, "L") == "[1, 2]");
  CHECK(values(kNested, "R", {{"R", "2 * 4"}}) == "8");
  CHECK(values(kNested, "F", {{"F", "LL128"}}) == "LL128");
  CHECK(values(kNested, "R", {{"R", "]"}}) == "4");
}

TEST_CASE("values: of the file and of functions") {
  CHECK(values(kNested, "all") == "[0, 2, 4, 6]");
  CHECK(values(kNested, "twice") == "");
  CHECK(values(kNested, "x") == "");
}

TEST_CASE("values: of loop variables") {
  CHECK(values(kNested, "r") == "0..4");
  CHECK(values(kNested, "p") == "2, 3");
  CHECK(values(kNested, "i") == "0..4");
  CHECK(values("let a = [i for i in [5, 1, 2, 3, 9]]\n", "i") == "1..4, 5, 9");
}

TEST_CASE("values: within loops, with the variables that they belong to") {
  CHECK(values(kNested, "next") == "1 when r = 0; 2 when r = 1; 3 when r = 2; 0 when r = 3");
  CHECK(values(kNested, "next", {{"R", "9"}}) ==
        "1 when r = 0; 2 when r = 1; 3 when r = 2; 4 when r = 3; ...");
  CHECK(values(kNested, "sum") ==
        "2 when r = 0, p = 2; 3 when r = 0, p = 3; 4 when r = 1, p = 3; 5 when r = 2, p = 3");
}

TEST_CASE("values: conditions hold") {
  CHECK(values(kNested, "only") == "1");
  CHECK(values(kNested, "rest") == "12 when r = 1; 6 when r = 2; 4 when r = 3");
}

TEST_CASE("values: what cannot be evaluated has none") {
  CHECK(values("let a = 1 / 0\n", "a") == "");
  CHECK(values("let a = b\n", "a") == "");
  CHECK(values("def f(c) { let n = c }\n", "n") == "");
}

TEST_CASE("values: hostile programs come to an end") {
  CHECK(values("let a = [i for i in 0..2 ** 40]\n", "i").find("no such") == std::string::npos);
  std::string loops = "rank r in 0..4 {";
  for (int i = 0; i < 40; ++i) loops += "for v" + std::to_string(i) + " in 0..100 {";
  loops += "let n = v0";
  for (int i = 0; i < 41; ++i) loops += "}";
  CHECK(values(loops, "n") != "no such name");
  std::stringstream lets;
  lets << "rank r in 0..4 {\nlet a0 = r\n";
  for (int i = 1; i < 20000; ++i) lets << "let a" << i << " = a" << i - 1 << "\n";
  lets << "}\n";
  CHECK(values(lets.str(), "a19999") == "");
  CHECK(values(lets.str(), "a1") == "0 when r = 0; 1 when r = 1; 2 when r = 2; 3 when r = 3");
}
