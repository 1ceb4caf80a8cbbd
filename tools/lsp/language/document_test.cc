#include "tools/lsp/language/document.h"

#include <catch2/catch.hpp>
#include <new>

#include "ir/support/read_file.h"
#include "tools/lsp/language/check.h"

using namespace mscclc;
using namespace mscclc::lsp;

namespace {

const std::string kRight =
    "param R = 2\ncollective allgather(ranks: R)\nrank r in 0..R {\n"
    "  channel ch[p in 0..R except r] = memory(p)\n"
    "  signal ch[1 - r] relaxed\n  wait ch[1 - r] relaxed\n"
    "  copy output[r] <- input\n  put ch[1 - r].output[r] <- input\n"
    "  signal ch[1 - r]\n  wait ch[1 - r]\n}\n";

}  // namespace

TEST_CASE("document: edits are of UTF-16 positions") {
  const Surroundings none;
  Document d("file:///a.mscl", "# \xf0\x9f\x98\x80 x\nlet a = 1\n", none);
  REQUIRE(d.replace(lsp::Range{{0, 4}, {0, 6}}, "y"));
  CHECK(d.text() == "# \xf0\x9f\x98\x80y\nlet a = 1\n");
  REQUIRE(d.replace(lsp::Range{{1, 8}, {1, 9}}, "22"));
  CHECK(d.text() == "# \xf0\x9f\x98\x80y\nlet a = 22\n");
}

TEST_CASE("document: edits out of range go to the end, those that run backwards are refused") {
  const Surroundings none;
  Document d("file:///a.mscl", "ab\ncd", none);
  REQUIRE(d.replace(lsp::Range{{9, 9}, {9, 9}}, "!"));
  CHECK(d.text() == "ab\ncd!");
  REQUIRE(d.replace(lsp::Range{{0, 50}, {1, 0}}, "-"));
  CHECK(d.text() == "ab-cd!");
  CHECK_FALSE(d.replace(lsp::Range{{0, 3}, {0, 1}}, "x"));
  CHECK(d.text() == "ab-cd!");
}

TEST_CASE("document: while it cannot be read, the tree is the last one") {
  const Surroundings none;
  Document d("file:///a.mscl", "let a = 1\n", none);
  REQUIRE(d.is_current());
  d.replace(std::string("rank 0 {"));
  CHECK_FALSE(d.is_current());
  REQUIRE(d.names() != nullptr);
  CHECK(d.names()->uses().size() == 1);
  CHECK(d.use_at({0, 4}) == nullptr);
  d.replace(std::string("let a = 1, b = a\n"));
  CHECK(d.is_current());
  CHECK(d.use_at({0, 4}) != nullptr);
}

TEST_CASE("document: it is compiled and proved") {
  const Surroundings none;
  Document d("file:///a.mscl", kRight, none);
  CHECK(d.checked().proved);
  CHECK(d.checked().diagnostics.all().empty());
  d.replace(kRight + "x");
  CHECK_FALSE(d.checked().proved);
  CHECK(d.checked().diagnostics.has_errors());
}

TEST_CASE("document: one for import is not asked for a collective") {
  const Surroundings none;
  Document library("file:///a.mscl", "def move(c) { signal c }\nlet a = 1\n", none);
  CHECK(library.checked().diagnostics.all().empty());
  library.replace(std::string("def move(c) { signal d }\n"));
  CHECK(library.checked().diagnostics.has_errors());
  Document program("file:///a.mscl", "param R = 2\nrank r in 0..R { sync }\n", none);
  CHECK(program.checked().diagnostics.has_errors());
}

TEST_CASE("document: one of row functions alone is for import") {
  const Surroundings none;
  const std::string path = "plans/rows/functions.mscl";
  Document functions("file:///functions.mscl", read_file(path).value(), none);
  CHECK(functions.checked().diagnostics.all().empty());
}

TEST_CASE("document: one that takes more memory than there is gets an error") {
  const auto no_memory = [](const std::string&) -> std::optional<std::string> {
    throw std::bad_alloc();
  };
  const Checked checked =
      check("a.mscl", "import \"b.mscl\"\n" + kRight, nullptr, front_end({}, no_memory, kMaxOps));
  CHECK_FALSE(checked.proved);
  REQUIRE(checked.diagnostics.all().size() == 1);
  CHECK(checked.diagnostics.all()[0].code == "memory");
  CHECK(checked.diagnostics.all()[0].message.starts_with("'a.mscl' takes more memory to compile"));
}

TEST_CASE("document: one that unrolls to too many ops is refused") {
  Surroundings few;
  few.most_ops = 100;
  Document d("file:///a.mscl",
             "collective barrier(ranks: 2)\nrank r in 0..2 { for i in 0..1000 { sync } }\n", few);
  CHECK(d.checked().diagnostics.has_errors());
}
