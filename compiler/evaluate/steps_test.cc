#include "compiler/evaluate/steps.h"

#include <catch2/catch.hpp>

using namespace mscclc;

namespace {

struct WithSteps {
  Sources sources;
  const FileId file = sources.add("a.mscl", "let n = 1");
  ast::Ast ast{sources};
  Diagnostics diagnostics;
  NameValues names{ast.names().size()};
  EvaluationContext context{ast, diagnostics, names};
  Steps steps{context};
  WithSteps() { ast.add_file(file); }
};

}  // namespace

TEST_CASE("a program that takes too many steps is stopped, and says so once") {
  WithSteps w;
  w.steps.set_max(3, 10);
  CHECK(w.steps.take({}, 3));
  CHECK(w.steps.left() == 0);
  CHECK_FALSE(w.steps.take({}));
  CHECK_FALSE(w.steps.take({}));
  CHECK(w.steps.stopped());
  REQUIRE(w.diagnostics.all().size() == 1);
  CHECK(w.diagnostics.all()[0].message == "the program has not ended after 3 steps");
}

TEST_CASE("ops earn steps, up to a limit") {
  WithSteps w;
  w.steps.set_max(3, 10);
  w.steps.earn(4);
  CHECK(w.steps.left() == 7);
  w.steps.earn(100);
  CHECK(w.steps.left() == 10);
  CHECK(w.steps.take_if_left(8));
  CHECK_FALSE(w.steps.take_if_left(3));
  CHECK(w.steps.taken() == 8);
  CHECK_FALSE(w.steps.stopped());
}

TEST_CASE("a loop that is too long is refused before its first round") {
  WithSteps w;
  w.steps.set_max(5, 100);
  CHECK(w.steps.rounds(5, {}));
  CHECK(w.steps.rounds(50, {}, true));
  CHECK_FALSE(w.steps.rounds(6, {}));
  CHECK(w.diagnostics.all()[0].message ==
        "a loop of 6 rounds in all, where 5 of the program's 5 steps are left");
}
