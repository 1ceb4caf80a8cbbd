#include "compiler/builder/declare/names.h"

#include <catch2/catch.hpp>

using namespace mscclc;

TEST_CASE("a name means one thing on a rank, and another on the next") {
  Diagnostics diagnostics;
  BuildReports reports(diagnostics, nullptr, nullptr);
  Draft draft(reports);
  Names names(reports, draft);
  draft.program.ranks.resize(2);
  names.set_ranks(2);
  const NameId inbox = draft.program.intern("inbox");
  for (uint32_t r = 0; r < 2; ++r) {
    draft.enter(r);
    names.begin_rank();
    CHECK(names.declare(inbox, r == 0 ? DeclKind::buffer : DeclKind::channel, r + 5, {}));
  }
  CHECK(names.decl(0, inbox).kind == DeclKind::buffer);
  CHECK(names.decl(1, inbox).kind == DeclKind::channel);
  CHECK(names.decl(1, inbox).index == 6);
  CHECK(names.decl(1, draft.output_name).index == kOutput);
  CHECK(names.decl(0, inbox + 1).kind == DeclKind::none);
  CHECK(kind_name(names.decl(1, inbox).kind) == "channel");
  CHECK_FALSE(reports.failed());
  CHECK_FALSE(names.declare(inbox, DeclKind::buffer, 0, {}));
  CHECK(diagnostics.all()[0].message == "'inbox' is already declared");
}

TEST_CASE("a poisoned name counts as a mistake that was reported") {
  Diagnostics diagnostics;
  BuildReports reports(diagnostics, nullptr, nullptr);
  Draft draft(reports);
  Names names(reports, draft);
  names.poison(9);
  CHECK(names.is_poisoned(9));
  CHECK_FALSE(names.is_poisoned(8));
  CHECK_FALSE(names.is_poisoned(10));
  CHECK(reports.failed());
  CHECK(diagnostics.all().empty());
}
