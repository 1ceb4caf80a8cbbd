#include "compiler/fix/outline.h"

#include <catch2/catch.hpp>

#include "compiler/fix/scope.h"

namespace mscclc::fix {
namespace {

constexpr const char* kText =
    "program    a\n"
    "param      R = 2\n"
    "collective allreduce(ranks: R,\n"
    "           chunks: 2)\n"
    "\n"
    "rank r in 0..R {\n"
    "  let others = 0..R except r  # all but me\n"
    "  channel ch[p in others] = memory(p) to back\n"
    "  tb 0 {\n"
    "    for p in others { put ch[p].x[r] <-\n"
    "        input[0] ; signal ch[p] }\n"
    "    wait ch[p] for p in others\n"
    "  }\n"
    "}\n";

std::vector<std::string> heads(const Outline& outline) {
  std::vector<std::string> found;
  for (const Statement& s : outline.statements()) found.emplace_back(outline.head_text(s));
  return found;
}

TEST_CASE("an outline finds statements, whatever they say") {
  const Outline outline(kText);
  CHECK(heads(outline) ==
        std::vector<std::string>{"program    a", "param      R = 2",
                                 "collective allreduce(ranks: R,\n           chunks: 2)",
                                 "rank r in 0..R", "let others = 0..R except r",
                                 "channel ch[p in others] = memory(p) to back", "tb 0",
                                 "for p in others", "put ch[p].x[r] <-\n        input[0]",
                                 "signal ch[p]", "wait ch[p] for p in others"});
  const Statement& put = outline.statements()[8];
  CHECK(outline.statements()[put.parent].parent == 6);
  CHECK(outline.line_of(outline.begin(put)) == 10);
  CHECK(outline.statement_at(outline.byte_of(11, 9)) == 8);
  CHECK(outline.block_of(8) == std::vector<uint32_t>{8, 9});
  CHECK(outline.in_body(8));
  CHECK_FALSE(outline.in_body(1));
  CHECK_FALSE(outline.begins_line(outline.statements()[9]));
  CHECK(outline.ends_line(outline.statements()[4]));
}

TEST_CASE("an outline of what does not parse") {
  CHECK(heads(Outline("rank 0 {\n  put x[ <- y\n  }\n}\n}\n")) ==
        std::vector<std::string>{"rank 0", "put x[ <- y"});
  CHECK(heads(Outline("")).empty());
  CHECK(heads(Outline("}}}")).empty());
  CHECK(heads(Outline("{")) == std::vector<std::string>{""});
  CHECK(heads(Outline("$ \xff if {{{ ;;")).size() == 3);
}

TEST_CASE("what a program promises is all outside of bodies") {
  const Outline outline(kText);
  CHECK(outline.promises() ==
        "program a \nparam R = 2 \ncollective allreduce ( ranks : R , chunks : 2 ) \n");
}

TEST_CASE("what a program declares") {
  const Outline outline(kText);
  const Scope scope(outline);
  REQUIRE(scope.channels().size() == 1);
  CHECK(scope.channels()[0].operand == "ch[p] for p in others");
  CHECK(scope.channels()[0].partner == "back");
  CHECK(scope.channel_operands() == std::vector<std::string>{"ch[p] for p in others", "ch[p]"});
  CHECK(scope.variables(8) == std::vector<std::string>{"p", "others", "r"});
  CHECK(scope.ranks(8) == "R");
}

}  // namespace
}  // namespace mscclc::fix
