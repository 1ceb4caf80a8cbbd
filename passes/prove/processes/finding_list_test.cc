// Each place is reported once, and only so many are.
#include "passes/prove/processes/finding_list.h"

#include <catch2/catch.hpp>

namespace mscclc::proof {
namespace {

TEST_CASE("a place is reported once") {
  FindingList findings(true);
  CHECK(findings.may_report(7));
  CHECK_FALSE(findings.may_report(7));
  CHECK(findings.reported(7));
  CHECK_FALSE(findings.reported(8));
  findings.note_reported(8);
  CHECK_FALSE(findings.may_report(8));
}

TEST_CASE("the list has an end, and a finding that had no room may come later") {
  FindingList findings(true);
  uint64_t key = 0;
  while (findings.may_report(++key)) findings.add(Finding::Kind::race);
  CHECK(findings.size() == 50);
  CHECK_FALSE(findings.reported(key));
  CHECK(findings.all().back().in_place);
}

}  // namespace
}  // namespace mscclc::proof
