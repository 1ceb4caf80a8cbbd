#include "tools/lsp/features/diagnostics.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tools/lsp/features/sample_test.h"

using namespace mscclc::lsp;
using mscclc::lsp::testing::kRace;
using mscclc::lsp::testing::Sample;

TEST_CASE("diagnostics: a race has both ends, and is at the op") {
  Sample sample(kRace);
  const Json all = diagnostics_of(sample.document);
  REQUIRE(all.size() == 1);
  CHECK(all[0]["code"] == "race");
  CHECK(all[0]["severity"] == 1);
  CHECK(range_of(all[0]["range"]) == mscclc::lsp::Range{{6, 20}, {6, 23}});
  const Json& ends = all[0]["relatedInformation"];
  REQUIRE(ends.size() == 2);
  CHECK(range_of(ends[0]["location"]["range"])->start == Position{9, 20});
  CHECK(range_of(ends[1]["location"]["range"])->start == Position{6, 20});
  CHECK(all[0]["message"].get<std::string>().find("\nnote: when r = 0, p = 3") !=
        std::string::npos);
}

TEST_CASE("diagnostics: syntax errors come after characters of several units") {
  Sample sample("let a = 1\nlet b = \"\xf0\x9f\x98\x80\" ^$\n");
  const Json all = diagnostics_of(sample.document);
  REQUIRE(!all.empty());
  CHECK(std::ranges::any_of(
      all, [&](const Json& one) { return range_of(one["range"])->start == sample.mark(); }));
}

TEST_CASE("diagnostics: a mistake in parameters is at their comment") {
  Sample sample("# a\n# mscclc: -D N=4\n" + kRace);
  const Json all = diagnostics_of(sample.document);
  REQUIRE(all.size() == 1);
  CHECK(all[0]["code"] == "define");
  CHECK(range_of(all[0]["range"]) == mscclc::lsp::Range{{1, 0}, {1, 16}});
}

TEST_CASE("diagnostics: all sets of parameters are checked, and one mistake is shown once") {
  std::string program = kRace;
  program.insert(program.find("collective"), "require R < 5, \"few ranks\"\n");
  Sample sample("# mscclc: -D R=3\n# mscclc: -D R=4\n# mscclc: -D R=5\n" + program);
  const Json all = diagnostics_of(sample.document);
  REQUIRE(all.size() == 2);
  CHECK(all[0]["code"] == "race");
  CHECK(all[0]["message"].get<std::string>().ends_with("note: with -D R=3"));
  CHECK(all[1]["code"] == "require");
  CHECK(all[1]["message"].get<std::string>().ends_with("note: with -D R=5"));
}

TEST_CASE("diagnostics: a line of parameters that is one too many is not ignored") {
  std::string lines;
  for (size_t i = 0; i <= mscclc::lsp::kMaxSets; ++i) lines += "# mscclc: -D R=3\n";
  Sample sample(lines + kRace);
  const Json all = diagnostics_of(sample.document);
  REQUIRE(all.size() == 2);
  CHECK(all[1]["message"] == "only the first 8 lines of parameters are checked");
  CHECK(range_of(all[1]["range"])->start == Position{8, 0});
}

TEST_CASE("diagnostics: what is never used fades out") {
  Sample sample("collective allgather(ranks: 1)\nlet ^a = 1\nrank 0 { copy output <- input }\n");
  const Json all = diagnostics_of(sample.document);
  REQUIRE(all.size() == 1);
  CHECK(all[0]["severity"] == 2);
  CHECK(all[0]["tags"] == Json::array({1}));
  CHECK(range_of(all[0]["range"])->start == sample.mark());
}

TEST_CASE("diagnostics: a mistake in an imported file refers to it") {
  Surroundings files;
  files.read_file = [](const std::string& path) -> std::optional<std::string> {
    if (path != "/lib/b.mscl") return std::nullopt;
    return "let b = 1 +\n";
  };
  Document document("file:///lib/a.mscl", "import \"b.mscl\"\ncollective barrier(ranks: 2)\n",
                    files);
  const Json all = diagnostics_of(document);
  REQUIRE(!all.empty());
  CHECK(range_of(all[0]["range"])->start == Position{0, 0});
  CHECK(all[0]["relatedInformation"][0]["location"]["uri"] == "file:///lib/b.mscl");
}
