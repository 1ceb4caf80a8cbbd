#include "compiler/parser/definition_parser.h"

#include <catch2/catch.hpp>

#include "compiler/parser/parsing.h"

using namespace mscclc;

TEST_CASE("a let gives names values, and functions bodies") {
  Parsing p("let a = 1, f(x, y) = { let z = x ; z + y }");
  const ast::Stmt* stmt = p.definitions.let(ast::StmtKind::let);
  INFO(p.message());
  REQUIRE(stmt != nullptr);
  const ast::Let& let = stmt->as<ast::Let>();
  REQUIRE(let.definitions.size() == 2);
  CHECK_FALSE(let.definitions[0].function);
  CHECK(let.definitions[1].parameters.size() == 2);
  CHECK(let.definitions[1].locals.size() == 1);
  CHECK(p.definitions.blocks() == 0);
}

TEST_CASE("a function is not defined inside of a block") {
  Parsing p("let f(x) = x");
  p.definitions.enter_block();
  p.definitions.let(ast::StmtKind::let);
  CHECK(p.message() == "the function 'f' must be defined at file level");
}

TEST_CASE("after a mistake in its body, what follows a function is next") {
  Parsing p("let f(x) = { let = 1 ; x }\nlet g = 2");
  CHECK(p.definitions.let(ast::StmtKind::let) == nullptr);
  CHECK_FALSE(p.message().empty());
  CHECK(p.in.tok().symbol == ast::w_let);
  CHECK(p.definitions.blocks() == 0);
}
