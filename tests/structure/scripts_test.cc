// Rules for scripts that no tool checks.
#include <catch2/catch.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

/// A grep that looks for one match ends with it; under 'pipefail', a program that has yet to print
/// the rest then fails, sometimes, and so does the line: 'grep -q TEXT <<<"$(PROGRAM)"' does not.
bool may_break_a_pipe(const std::string& line) {
  static const std::regex pipe(R"((?:^|[^|])\|\s*[ef]?grep\s+(?:-\S+\s+)*-\w*q)");
  return std::regex_search(line, pipe);
}

bool is_a_script(std::string_view path) {
  return path.ends_with(".sh") || path == "test" || path == "quickstart";
}

TEST_CASE("a pipe into a grep that ends early is found") {
  CHECK(may_break_a_pipe("readelf -d x | grep -q SONAME"));
  CHECK(may_break_a_pipe("lines | grep -i -Eq name"));
  CHECK(!may_break_a_pipe("a || grep -q b c"));
  CHECK(!may_break_a_pipe("lines | grep -c q"));
}

TEST_CASE("no script pipes into a grep that ends early") {
  size_t scripts = 0;
  for (const auto& [path, text] : texts()) {
    if (!is_a_script(path)) continue;
    ++scripts;
    std::istringstream lines(text);
    size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (may_break_a_pipe(line)) FAIL_CHECK(path << ":" << number << ": " << line);
    }
  }
  CHECK(scripts > 50);
}

}  // namespace
}  // namespace mscclc::structure
