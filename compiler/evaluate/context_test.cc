#include "compiler/evaluate/context.h"

#include <catch2/catch.hpp>

using namespace mscclc;

namespace {

/// A context of the names a and b, which stand for 5 and [0, 1].
struct WithContext {
  Sources sources;
  FileId file = sources.add("a.mscl", "a + b");
  ast::Ast ast{sources};
  ast::Symbol a, b;
  Diagnostics diagnostics;
  NameValues names;
  EvaluationContext context{ast, diagnostics, names};
  const List pair = List::range(0, 2);
  WithContext()
      : a(ast.names().intern("a")), b(ast.names().intern("b")), names(ast.names().size()) {
    ast.add_file(file);
    names.of(a) = Value::of(5);
    names.of(b).kind = ValueKind::list;
    names.of(b).list = &pair;
  }
  ast::Expr name(ast::Symbol s) {
    ast::Expr e;
    e.kind = ast::ExprKind::name;
    e.name = {s, 0};
    return e;
  }
};

}  // namespace

TEST_CASE("a mistake comes with the variables that led there") {
  WithContext w;
  w.context.bindings.push_back({w.a, 7});
  const ast::Expr b = w.name(w.b);
  const Diagnostic& d = w.context.fail("overflow", b, "overflow");
  REQUIRE(d.notes.size() == 1);
  CHECK(d.notes[0].text == "when a = 7, b = [0, 1]");
  REQUIRE(d.loop.size() == 1);
  CHECK(d.loop[0].value == 7);
  CHECK(w.context.mistakes() == 1);
  CHECK(w.context.variables_text(b) == "b = [0, 1]");
}

TEST_CASE("a long chain of expansions loses its middle") {
  WithContext w;
  for (int i = 0; i < 9; ++i) w.context.expansions.push_back({{}, w.a});
  const Diagnostic& d = w.context.fail("too-deep", ast::TextRange{}, "too deep");
  REQUIRE(d.notes.size() == 5);
  CHECK(d.notes[0].text == "in 'a', expanded here");
  CHECK(d.notes[3].text == "5 more expansions");
}

TEST_CASE("a value of the wrong kind is reported unless its mistake was") {
  WithContext w;
  const ast::Expr b = w.name(w.b);
  CHECK_FALSE(w.context.expected("a number", ValueKind::unbound, b));
  CHECK(w.diagnostics.all().empty());
  CHECK_FALSE(w.context.expected("a number", ValueKind::list, b));
  CHECK(w.diagnostics.all()[0].message == "expected a number, found a list");
  CHECK_FALSE(w.context.expected("a number", ValueKind::def, b));
  CHECK(w.diagnostics.all().back().message == "'b' is a def; expected a number");
}
