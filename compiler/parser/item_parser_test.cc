// Items, and the statements in them.
#include "compiler/parser/item_parser.h"

#include <catch2/catch.hpp>

using namespace mscclc;

namespace {

/// A text parsed as a file.
struct ParsedItems {
  Sources sources;
  const FileId id;
  ast::Ast ast;
  Diagnostics diagnostics;
  ast::File& file;
  ItemParser items;
  const bool good;

  explicit ParsedItems(std::string text)
      : id(sources.add("a.mscl", std::move(text))),
        ast(sources),
        file(*ast.add_file(id)),
        items(file, ast, diagnostics),
        good(items.file()) {}
  std::vector<std::string> messages() const {
    std::vector<std::string> out;
    for (const Diagnostic& d : diagnostics.all()) out.push_back(d.message);
    return out;
  }
};

}  // namespace

TEST_CASE("a file is a list of items") {
  const ParsedItems p("program p\nlet a = 1\nrank 0 { tb 0 { signal ch } }\n");
  CHECK(p.good);
  REQUIRE(p.file.items.size() == 3);
  CHECK(p.file.items[2]->kind == ast::StmtKind::rank);
  CHECK(p.file.items[2]->as<ast::Placed>().body.statements.size() == 1);
}

TEST_CASE("all mistakes of a file are reported at once") {
  const ParsedItems p(
      "program p\nprogram q\nlett a = 1\nrank 0 {\n  copi a <- b\n  copy <- 1\n}\n");
  CHECK_FALSE(p.good);
  const std::vector<std::string> messages = p.messages();
  REQUIRE(messages.size() == 4);
  CHECK(messages[0] == "a second 'program' line");
  CHECK(messages[1] == "unknown item 'lett'; did you mean 'let'?");
  CHECK(messages[2] == "unknown op 'copi'; did you mean 'copy'?");
}

TEST_CASE("an item in a block, and a statement outside of one, are out of place") {
  const ParsedItems p("rank 0 {\n  launch threads: 32\n}\nput a <- b\n");
  const std::vector<std::string> messages = p.messages();
  REQUIRE(messages.size() == 2);
  CHECK(messages[0] == "'launch' belongs at file level, not inside a block");
  CHECK(messages[1] == "'put' belongs inside a 'rank' body");
}

TEST_CASE("the brace that lacks its other is shown") {
  const ParsedItems p("rank 0 {\n  tb 0 {\n    signal ch\n}\nrank 1 { }\n");
  REQUIRE(p.messages().size() == 1);
  CHECK(p.messages()[0] == "'}' missing for the '{' at 2:8");
}
