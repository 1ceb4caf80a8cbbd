// No function hands out why it failed through a parameter: docs/design/failures.md has Result for
// that.
#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

/// Lines with a parameter that a function fills with its error.
std::vector<std::string> error_parameters(const std::string& path, const std::string& text) {
  static const std::regex kParameter(R"((const\s+)?\bstd::string\s*&\s*(why|error)\s*[,)])");
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), kParameter), end; at != end; ++at) {
    if ((*at)[1].matched) continue;
    const auto line = std::count(text.begin(), text.begin() + at->position(), '\n') + 1;
    found.push_back(path + ":" + std::to_string(line) + ": give a Result, or std::optional<Error>");
  }
  return found;
}

TEST_CASE("parameters for errors are found, and others are not") {
  const auto count = [](const std::string& text) { return error_parameters("a.h", text).size(); };
  CHECK(count("bool f(int a, std::string& why);") == 1);
  CHECK(count("bool f(std::string &error, int b,\n       std::string&\n why) const;") == 2);
  CHECK(error_parameters("a.h", "\n\nbool f(std::string& why);").front().starts_with("a.h:3: "));
  CHECK(count("void f(const std::string& why, std::string& text);") == 0);
  CHECK(count("std::string& error = errors.back(); f(why);") == 0);
}

TEST_CASE("no function hands out an error through a parameter") {
  const auto all = sources();
  REQUIRE(all.size() > 500);
  for (const auto& [path, text] : all) {
    if (path == "tests/structure/results_test.cc") continue;
    for (const std::string& message : error_parameters(path, text)) FAIL_CHECK(message);
  }
}

}  // namespace
}  // namespace mscclc::structure
