#include "tools/doctor/findings.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace mscclc::doctor;

namespace {

Findings sample() {
  Findings findings;
  findings.begin("driver");
  findings.fine("driver 1");
  findings.begin("memlock");
  findings.problem("too little", "more");
  findings.note("a\xff", "b");
  return findings;
}

}  // namespace

TEST_CASE("findings: for people, remedies stand below") {
  CHECK(findings_text(sample()) ==
        "driver        ok       driver 1\n"
        "memlock       problem  too little\n"
        "                       -> more\n"
        "memlock       note     a\xff\n"
        "                       -> b\n"
        "1 problem, 1 note\n");
}

TEST_CASE("findings: for programs, as JSON in UTF-8") {
  const auto json = nlohmann::json::parse(findings_json(sample()));
  CHECK(json["problems"] == 1);
  REQUIRE(json["findings"].size() == 3);
  CHECK_FALSE(json["findings"][0].contains("remedy"));
  CHECK(json["findings"][1]["check"] == "memlock");
  CHECK(json["findings"][1]["level"] == "problem");
  CHECK(json["findings"][1]["remedy"] == "more");
}

TEST_CASE("findings: only problems are problems") {
  Findings findings;
  findings.note("a", "b");
  CHECK_FALSE(findings.has_problems());
  CHECK(sample().has_problems());
}
