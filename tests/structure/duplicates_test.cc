// How often the same text stands in two places. The figure and the longest such texts are printed.
#include "tests/structure/duplicates.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

constexpr double kMostPairs = 4;  // of 100 files: today's, rounded up
constexpr size_t kShown = 30;

std::map<std::string, std::string> sources_and_python() {
  std::map<std::string, std::string> all = sources();
  for (auto& [path, text] : texts()) {
    if (path.ends_with(".py")) all.emplace(path, std::move(text));
  }
  return all;
}

TEST_CASE("hardly any text stands in two places") {
  const std::map<std::string, std::string> all = sources_and_python();
  REQUIRE(all.size() > 2000);
  const std::vector<DuplicatePair> pairs = duplicate_pairs(all);
  const double of_100 = 100.0 * static_cast<double>(pairs.size()) / static_cast<double>(all.size());
  std::printf("duplicate pairs: %zu of %zu files, %.1f of 100\n", pairs.size(), all.size(), of_100);
  for (size_t i = 0; i < std::min(kShown, pairs.size()); ++i) {
    const DuplicatePair& pair = pairs[i];
    std::printf("  %zu tokens: %s:%zu and %s:%zu\n", pair.tokens, pair.first.path.c_str(),
                pair.first.line, pair.second.path.c_str(), pair.second.line);
  }
  CHECK(of_100 <= kMostPairs);
}

/// So many statements that differ.
std::string statements(const std::string& name, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += name + std::to_string(i) + " = f(1);\n";
  return text;
}

TEST_CASE("equal runs of tokens are found, whatever stands around them") {
  const std::string same = statements("a", 9);  // of 7 tokens each
  const std::vector<DuplicatePair> pairs = duplicate_pairs({
      {"a.cc", "#include <a>\nint x;\n" + same + "int y;\n"},
      {"b.cc", "// a comment\n" + same + statements("b", 20)},
      {"c.cc", statements("c", 20)},
  });
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].tokens == 63);
  CHECK(pairs[0].first.path == "a.cc");
  CHECK(pairs[0].first.line == 3);
  CHECK(pairs[0].second.path == "b.cc");
  CHECK(pairs[0].second.line == 2);
}

TEST_CASE("runs of one file count if they do not overlap") {
  CHECK(duplicate_pairs({{"a.cc", statements("a", 9) + "\n;" + statements("a", 9)}}).size() == 1);
  CHECK(duplicate_pairs({{"a.cc", std::string(100, ';')}}).empty());
}

TEST_CASE("what is short, or differs in a string, is no duplicate") {
  CHECK(duplicate_pairs({{"a.cc", statements("a", 8)}, {"b.cc", statements("a", 8)}}).empty());
  const std::string half = statements("a", 5);
  CHECK(duplicate_pairs({{"a.cc", half + "f(\"x\");" + half}, {"b.cc", half + "f(\"y\");" + half}})
            .empty());
}

TEST_CASE("comments and imports of Python do not count") {
  std::string a, b;
  for (int i = 0; i < 9; ++i) {
    a += "import a\nx" + std::to_string(i) + " = f(1, 2)  # it's one\n";
    b += "x" + std::to_string(i) + " = f(1, 2)\n# another\n";
  }
  const std::vector<DuplicatePair> pairs = duplicate_pairs({{"a.py", a}, {"b.py", b}});
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].tokens == 72);
}

}  // namespace
}  // namespace mscclc::structure
