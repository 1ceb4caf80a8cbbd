// The list of conformance cases against the tests: each case that needs no GPU has a test, and each
// tag names such a case.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "ir/support/read_file.h"

namespace {

enum class Where { host, gpu, outside };
struct Case {
  int number;
  Where where;
  const char* what;
};
constexpr Case kCases[] = {
#define CASE(number, where, what) {number, Where::where, what},
#include "tests/nccl/cases.def"
#undef CASE
};

std::set<int> tagged() {
  std::set<int> numbers;
  const std::regex tag("\\[case-([0-9]+)\\]");
  for (const auto& entry : std::filesystem::directory_iterator("tests/nccl")) {
    const std::string name = entry.path().filename();
    if (!name.ends_with("_test.cc") && !name.ends_with("_test.sh")) continue;
    const auto text = mscclc::read_file(entry.path());
    REQUIRE(text.has_value());
    for (std::sregex_iterator at(text->begin(), text->end(), tag), end; at != end; ++at) {
      numbers.insert(std::stoi((*at)[1]));
    }
  }
  return numbers;
}

}  // namespace

TEST_CASE("cases are numbered from 1") {
  REQUIRE(std::size(kCases) >= 103);
  for (size_t i = 0; i < std::size(kCases); ++i) CHECK(kCases[i].number == static_cast<int>(i) + 1);
}

TEST_CASE("every case that needs no GPU has a test, and no other") {
  const std::set<int> tests = tagged();
  for (const Case& row : kCases) {
    INFO("case " << row.number << ": " << row.what);
    CHECK(tests.contains(row.number) == (row.where == Where::host));
  }
}
