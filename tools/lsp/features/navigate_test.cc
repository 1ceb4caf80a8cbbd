#include "tools/lsp/features/navigate.h"

#include <catch2/catch.hpp>

#include "tools/lsp/features/sample_test.h"

using namespace mscclc::lsp;
using mscclc::lsp::testing::kRace;
using mscclc::lsp::testing::Sample;

namespace {

std::vector<Position> starts(const Json& locations) {
  std::vector<Position> all;
  for (const Json& one : locations) all.push_back(range_of(one["range"])->start);
  return all;
}

Renamed renamed(const std::string& with_mark, const std::string& name) {
  Sample sample(with_mark);
  return rename(sample.document, sample.mark(), name);
}

}  // namespace

TEST_CASE("navigate: from a use to its declaration, and to all uses") {
  Sample sample("param ^R = 4\nlet a = ^R, b = ^R\n");
  for (const Position& mark : sample.marks()) {
    CHECK(starts(definition(sample.document, mark)) == std::vector{sample.mark(0)});
    CHECK(starts(references(sample.document, mark, true)) == sample.marks());
    CHECK(starts(references(sample.document, mark, false)) ==
          std::vector{sample.mark(1), sample.mark(2)});
    CHECK(starts(highlights(sample.document, mark)) == sample.marks());
  }
  CHECK(definition(sample.document, {1, 3}).empty());
}

TEST_CASE("navigate: a definition in an imported file") {
  Surroundings files;
  files.read_file = [](const std::string&) { return std::string("# x\nlet b = 1\n"); };
  Document document("file:///lib/a.mscl", "import \"b.mscl\"\nlet a = b\n", files);
  const Json found = definition(document, {1, 8});
  REQUIRE(found.size() == 1);
  CHECK(found[0]["uri"] == "file:///lib/b.mscl");
  CHECK(range_of(found[0]["range"])->start == Position{1, 4});
  CHECK(highlights(document, {1, 8}).size() == 1);
  CHECK(prepare_rename(document, {1, 8}).is_null());
  CHECK(rename(document, {1, 8}, "c").error == "it is declared in an imported file");
}

TEST_CASE("navigate: symbols lie within ranks") {
  Sample sample(kRace);
  const Json all = symbols(sample.document);
  REQUIRE(all.size() == 2);
  CHECK(all[0]["name"] == "R");
  CHECK(all[1]["name"] == "rank r in 0..R");
  REQUIRE(all[1]["children"].size() == 2);
  CHECK(all[1]["children"][0]["name"] == "s");
  CHECK(all[1]["children"][1]["name"] == "ch");
}

TEST_CASE("navigate: symbols of row functions, externals and flags") {
  Sample sample(
      "row f(x: row T, gate: row T) {\n  out y: row T = x * gate\n}\n"
      "external gate: row T, eps: scalar f32\nexternal flags ready[2] of: input\n"
      "collective allreduce(ranks: 1, columns: 64, then: f)\n"
      "rank 0 { tb 0 { copy output <- input } }\n");
  std::string names;
  for (const Json& symbol : symbols(sample.document)) {
    names += symbol["name"].get<std::string>() + ":" + std::to_string(symbol["kind"].get<int>());
    names += ' ';
  }
  CHECK(names == "f:12 gate:13 eps:13 ready:24 rank 0:3 ");
}

TEST_CASE("rename: all places of a name change, and the program stays the same") {
  const std::pair<const char*, const char*> cases[] = {
      {"R = 4", "ranks"}, {"others = 0", "all"}, {"s[others]", "parts"}, {"ch[p in", "up"}};
  for (const auto& [name, to] : cases) {
    std::string text = kRace;
    text.insert(text.find(name), "^");
    Sample sample(text);
    INFO(name);
    const Renamed done = rename(sample.document, sample.mark(), to);
    CHECK(done.error == "");
    const std::string after = sample.edited(done.edit["changes"]["file:///s.mscl"]);
    Sample again(after);
    REQUIRE(again.document.is_current());
    const auto before_codes = sample.document.checked().diagnostics.all();
    const auto& after_codes = again.document.checked().diagnostics.all();
    REQUIRE(after_codes.size() == before_codes.size());
    CHECK(after_codes[0].code == before_codes[0].code);
    CHECK(after.find(to) != std::string::npos);
  }
}

TEST_CASE("rename: a number of flags") {
  const std::string text =
      "param ^B = 2\nexternal flags ready[B] of: input\n"
      "collective allgather(ranks: 1, chunks: B)\n"
      "rank 0 { tb 0 { await ready[0]\n  copy output <- input } }\n";
  const Renamed found = renamed(text, "many");
  CHECK(found.error.empty());
}

TEST_CASE("rename: a name that means something else is refused") {
  std::string text = kRace;
  text.insert(text.find("R = 4"), "^");
  for (const char* name : {"r", "p", "others", "s", "ch"}) {
    INFO(name);
    CHECK(renamed(text, name).error ==
          "'" + std::string(name) + "' means something else where the name stands");
  }
  CHECK(renamed("param ^F = LL16\nrank 0 { buffer s[1] packets: F }\n", "LL8").error != "");
}

TEST_CASE("rename: what is no name, and what has none, is refused") {
  for (const char* name : {"", "1a", "a b", "a-b", "for", "in", "\xc3\xa9"}) {
    INFO(name);
    CHECK(renamed("let ^a = 1\n", name).error.find("is not a name") != std::string::npos);
  }
  CHECK(renamed("let a = ^1\n", "b").error == "there is no name that is declared");
  CHECK(renamed("rank 0 { copy output <- ^input }\n", "b").error ==
        "'input' and 'output' are the caller's");
  CHECK(renamed("rank 0 {\nlet ^a = 1\n", "b").error == "the program has syntax errors");
}
