// No function hands out why it failed through a parameter: docs/design/failures.md has Result for
// that.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

constexpr std::string_view kType = "std::string", kSpaces = " \n";
constexpr std::array<std::string_view, 6> kNames = {"errors", "error",   "message",
                                                    "reason", "mistake", "why"};

/// Takes `word` from the begin of a text, and spaces before it.
bool take(std::string_view& text, std::string_view word) {
  const size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  if (!text.substr(begin).starts_with(word)) return false;
  text.remove_prefix(begin + word.size());
  return true;
}

/// Is `rest`, what follows a std::string, a reference or pointer of such a name, as parameters end?
bool is_error(std::string_view rest) {
  if (!take(rest, "&") && !take(rest, "*")) return false;
  if (std::ranges::none_of(kNames, [&](std::string_view name) { return take(rest, name); })) {
    return false;
  }
  return take(rest, ",") || take(rest, ")");
}

bool is_const(std::string_view before) {
  const size_t end = before.find_last_not_of(kSpaces);
  return before.substr(0, end + 1).ends_with("const");
}

/// Lines with a parameter that a function fills with its error.
std::vector<std::string> error_parameters(const std::string& path, std::string_view text) {
  std::vector<std::string> found;
  for (size_t at = text.find(kType); at != text.npos; at = text.find(kType, at + 1)) {
    if (is_const(text.substr(0, at)) || !is_error(text.substr(at + kType.size()))) continue;
    const auto line = std::ranges::count(text.substr(0, at), '\n') + 1;
    found.push_back(path + ":" + std::to_string(line) + ": give a Result, or std::optional<Error>");
  }
  return found;
}

TEST_CASE("parameters for errors are found, and others are not") {
  const auto count = [](const std::string& text) { return error_parameters("a.h", text).size(); };
  CHECK(count("bool f(int a, std::string& why);") == 1);
  CHECK(count("bool f(std::string &error, int b,\n       std::string&\n why) const;") == 2);
  CHECK(count("std::optional<int> f(std::string& message, bool& wrong);") == 1);
  CHECK(count("int f(std::string* errors, std::string* reason);") == 2);
  CHECK(error_parameters("a.h", "\n\nbool f(std::string& why);").front().starts_with("a.h:3: "));
  CHECK(count("void f(const std::string& why, std::string& text);") == 0);
  CHECK(count("std::string& error = errors.back(); f(why);") == 0);
  CHECK(count("void f(std::string& messages, std::string& line);") == 0);
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
