#include "tools/lsp/language/tree.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tools/lsp/language/names.h"

using namespace mscclc;
using namespace mscclc::lsp;

namespace {

const std::string kProgram =
    "param R = 4\n"
    "collective allgather(ranks: R)\n"
    "rank r in 0..R {\n"
    "  let n = R\n"
    "  copy output[r] <- input\n"
    "}\n";

std::string with_line(size_t line, const std::string& text) {
  std::string program = kProgram;
  size_t at = 0;
  while (line-- > 0) at = program.find('\n', at) + 1;
  return program.insert(at, text + "\n");
}

}  // namespace

TEST_CASE("tree: a right program is read whole") {
  const auto tree = read_tree("a.mscl", kProgram, {});
  REQUIRE(tree != nullptr);
  CHECK(tree->whole);
  CHECK(tree->items.size() == 3);
  CHECK(tree->main->text == kProgram);
}

TEST_CASE("tree: statements that are being typed are left out, and nothing moves") {
  for (const char* line : {"  put ch.", "  let m =", "  copy output[", "  $", "  for p in"}) {
    const std::string text = with_line(4, line);
    INFO(line);
    const auto tree = read_tree("a.mscl", text, {});
    REQUIRE(tree != nullptr);
    CHECK_FALSE(tree->whole);
    CHECK(tree->items.size() == 3);
    CHECK(tree->main->text.size() == text.size());
    CHECK(tree->main->text.find("copy output[r]") == text.find("copy output[r]"));
  }
}

TEST_CASE("tree: what stands round a statement that is being typed stays") {
  const auto tree =
      read_tree("a.mscl", with_line(4, "  for p in 0..R { sync ; put ch. ; sync }"), {});
  REQUIRE(tree != nullptr);
  const Names names(*tree);
  CHECK(std::ranges::any_of(names.all(),
                            [&](const Declared& d) { return tree->ast.text(d.symbol) == "p"; }));
}

TEST_CASE("tree: what cannot be read at all gives none, and what has no lines too") {
  CHECK(read_tree("a.mscl", "rank r in 0..4 {\n tb 0 {\n", {}) == nullptr);
  const auto empty = read_tree("a.mscl", "", {});
  REQUIRE(empty != nullptr);
  CHECK(empty->items.empty());
}

TEST_CASE("tree: imports come from their files, once, also in a circle") {
  const std::map<std::string, std::string> files = {
      {"lib/b.mscl", "import \"c.mscl\"\nlet b = 1\n"},
      {"lib/c.mscl", "import \"b.mscl\"\nimport \"../a.mscl\"\nlet c = 2\n"}};
  const ReadFile read = [&](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
  const auto tree =
      read_tree("a.mscl", "import \"lib/b.mscl\"\nimport \"missing.mscl\"\nlet a = b + c\n", read);
  REQUIRE(tree != nullptr);
  REQUIRE(tree->items.size() == 3);
  CHECK(tree->items[0].imported);
  CHECK_FALSE(tree->items[2].imported);
  const Names names(*tree);
  size_t in_document = 0;
  for (const Use& use : names.uses()) in_document += tree->bytes(use.place).has_value() ? 1 : 0;
  CHECK(in_document == 3);
  CHECK(names.uses().size() == 5);
}
