#include "compiler/builder/draft/draft.h"

#include <catch2/catch.hpp>

using namespace mscclc;

TEST_CASE("a draft knows the rank at hand") {
  Diagnostics diagnostics;
  BuildReports reports(diagnostics, nullptr, nullptr);
  Draft draft(reports);
  draft.program.ranks.resize(3);
  CHECK_FALSE(draft.ready());
  CHECK(diagnostics.all()[0].message == "an op outside a rank");
  CHECK(draft.enter(1));
  CHECK(draft.ready());
  CHECK(draft.out == &draft.program.ranks[1]);
  CHECK_FALSE(draft.enter(1));
  CHECK(draft.entered(1));
  CHECK_FALSE(draft.entered(2));
  draft.set_entered(2, true);
  CHECK(draft.entered(2));
  CHECK(draft.rank == 1);
}
