#include "compiler/parser/expr_parser.h"

#include <catch2/catch.hpp>

#include "compiler/parser/parsing.h"

using namespace mscclc;

TEST_CASE("operators bind by their level") {
  Parsing p("1 + 2 * 3");
  ast::Expr e;
  REQUIRE(p.exprs.expr(e));
  CHECK(e.kind == ast::ExprKind::binary);
  CHECK(e.op == ast::BinaryOp::add);
  CHECK(e.kids[1].op == ast::BinaryOp::mul);
  CHECK(p.in.tok().kind == Tok::end);
}

TEST_CASE("what readers would take for something else needs parentheses") {
  for (const char* text : {"-1 ** 2", "2 ** 3 ** 4", "1 & 2 + 3"}) {
    INFO(text);
    Parsing p(text);
    ast::Expr e;
    CHECK_FALSE((p.exprs.expr(e) && p.in.tok().kind == Tok::end));
    CHECK(p.message().find("needs parentheses") != std::string::npos);
  }
}

TEST_CASE("binders, and expressions alone") {
  Parsing p("i in 0..3 where i > 1, 5");
  ast::Binder b;
  REQUIRE(p.exprs.binder_or_expr(b));
  CHECK(b.name.given());
  CHECK(b.where != nullptr);
  REQUIRE(p.in.accept_comma());
  ast::Binder alone;
  REQUIRE(p.exprs.binder_or_expr(alone));
  CHECK_FALSE(alone.name.given());
  CHECK(alone.list.value == 5);
}

TEST_CASE("a definition on the command line is an expression, or a list of them") {
  Parsing one("7"), two("7, 8"), none("7 +");
  ast::Expr e;
  // define() begins with the first token itself.
  TokenStream in(two.file, two.ast, two.diagnostics);
  REQUIRE(ExprParser(two.file, two.ast, in).define(e));
  CHECK(e.kind == ast::ExprKind::list);
  CHECK(e.count == 2);
  TokenStream single(one.file, one.ast, one.diagnostics);
  REQUIRE(ExprParser(one.file, one.ast, single).define(e));
  CHECK(e.value == 7);
  TokenStream bad(none.file, none.ast, none.diagnostics);
  CHECK_FALSE(ExprParser(none.file, none.ast, bad).define(e));
}

TEST_CASE("expressions nest only so deep") {
  Parsing p(std::string(2000, '(') + "1");
  ast::Expr e;
  CHECK_FALSE(p.exprs.expr(e));
  CHECK(p.message().find("nests deeper than") != std::string::npos);
}
