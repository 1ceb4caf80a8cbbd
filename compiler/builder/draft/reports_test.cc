#include "compiler/builder/draft/reports.h"

#include <catch2/catch.hpp>

using namespace mscclc;

TEST_CASE("a mistake of a C++ program stands at its call, with its variables") {
  Sources sources;
  Diagnostics diagnostics;
  BuildReports reports(diagnostics, nullptr, &sources);
  reports.set_call("tree.cc", 7, "r = 1");
  CHECK_FALSE(reports.failed());
  Diagnostic& d = reports.fail("rank", {}, "an op outside a rank");
  reports.note(d, {}, "there are 2");
  CHECK(reports.failed());
  CHECK(reports.text({1, 2}).empty());
  CHECK(d.span.line == 7);
  CHECK(sources.file(d.span.file).name == "tree.cc");
  REQUIRE(d.notes.size() == 2);
  CHECK(d.notes[0].text == "when r = 1");
  CHECK(d.notes[1].text == "there are 2");
}

TEST_CASE("a warning is no failure") {
  Diagnostics diagnostics;
  BuildReports reports(diagnostics, nullptr, nullptr);
  reports.warn("unused", {}, "'a' is never used");
  CHECK_FALSE(reports.failed());
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(diagnostics.all().size() == 1);
}
