#include "compiler/parser/op_parser.h"

#include <catch2/catch.hpp>

#include "compiler/parser/parsing.h"

using namespace mscclc;

TEST_CASE("an op has destinations, sources, options and places") {
  Parsing p("reduce a, b[0] <- c, d for x in 0..2 op: sum, relaxed @\"f.mscl\":3:4(r=-1)");
  const ast::Stmt* stmt = p.ops.op();
  INFO(p.message());
  REQUIRE(stmt != nullptr);
  const ast::OpStmt& op = stmt->as<ast::OpStmt>();
  CHECK(op.dst_count == 2);
  CHECK(op.operands.size() == 4);
  CHECK(op.operands[3].binder != nullptr);
  REQUIRE(op.options.size() == 2);
  CHECK(p.ast.text(op.options[1].name) == "relaxed");
  REQUIRE(op.locations.size() == 1);
  CHECK(op.locations[0].line == 3);
  CHECK(op.locations[0].values[0].value == -1);
}

TEST_CASE("an op without operands may stand before the end") {
  Parsing p("wait ; x");
  const ast::Stmt* stmt = p.ops.op();
  REQUIRE(stmt != nullptr);
  CHECK(stmt->as<ast::OpStmt>().operands.empty());
}

TEST_CASE("an operand that is none is reported") {
  Parsing p("copy a <- 3");
  CHECK(p.ops.op() == nullptr);
  CHECK(p.message() ==
        "expected an operand (a buffer, and the number of its chunk in brackets: 'input[0]') "
        "before '3'");
}

TEST_CASE("a number as the operand of a row function is reported with how to write it") {
  for (const char* op : {"apply f output[0] <- input[0], 2", "apply f 2 <- input[0]",
                         "reduce a[0] <- b[0], c[0] then f _ <- _, 2"}) {
    Parsing p(op);
    CHECK(p.ops.op() == nullptr);
    CHECK(p.message() ==
          "expected an operand (a buffer's chunk or an external; a number stands in the row "
          "function, or comes with the call: 'external g: scalar f32') before '2'");
  }
}
