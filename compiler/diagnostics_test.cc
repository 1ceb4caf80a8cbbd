// Every message of the catalogue in docs/language.md but those of 'Text' (syntax_errors_test.cc):
// the whole of what is printed, testdata/diagnostics_*.txt.
#include <catch2/catch.hpp>

#include "compiler/testing/text_cases.h"

using namespace mscclc;

namespace {

int check_file(const std::string& section) {
  return each_case("compiler/testdata/diagnostics_" + section + ".txt", [](const TextCase& c) {
    INFO(c.name);
    CHECK(outcome(c.text) == c.expected);
  });
}

std::string repeated_lines(int times, const std::function<std::string(int)>& line) {
  std::string out;
  for (int i = 0; i < times; ++i) out += line(i);
  return out;
}

const std::string kBody =
    "collective allreduce(ranks: 1)\nrank 0 { tb 0 { copy output <- input } }\n";

}  // namespace

TEST_CASE("names") { CHECK(check_file("names") > 15); }
TEST_CASE("values") { CHECK(check_file("values") > 10); }
TEST_CASE("structure") { CHECK(check_file("structure") > 8); }
TEST_CASE("channels") { CHECK(check_file("channels") > 15); }
TEST_CASE("ops") { CHECK(check_file("ops") > 8); }
TEST_CASE("units") { CHECK(check_file("units") >= 2); }
TEST_CASE("contract") { CHECK(check_file("contract") > 15); }

TEST_CASE("functions nest 64 levels deep") {
  const auto line = [](int i) {
    const std::string n = std::to_string(i);
    return i == 0 ? std::string("let f0(x) = x\n")
                  : "let f" + n + "(x) = f" + std::to_string(i - 1) + "(x)\n";
  };
  CHECK(outcome(repeated_lines(64, line) + "require f63(1) == 1, \"\"\n" + kBody).empty());
  CHECK(outcome(repeated_lines(65, line) + "require f64(1) == 1, \"\"\n" + kBody) ==
        "a.mscl:2:13: error: expansion deeper than 64\n"
        "let f1(x) = f0(x)\n"
        "            ^~~~~\n");
}

TEST_CASE("defs nest 64 levels deep") {
  const auto line = [](int i) {
    const std::string n = std::to_string(i);
    return i == 0 ? std::string("def d0() { copy output <- input }\n")
                  : "def d" + n + "() { d" + std::to_string(i - 1) + "() }\n";
  };
  const std::string head = "collective allreduce(ranks: 1)\n";
  CHECK(outcome(repeated_lines(64, line) + head + "rank 0 { tb 0 { d63() } }").empty());
  CHECK(outcome(repeated_lines(65, line) + head + "rank 0 { tb 0 { d64() } }") ==
        "a.mscl:2:12: error: expansion deeper than 64\n"
        "def d1() { d0() }\n"
        "           ^~~~\n"
        "a.mscl:3:12: note: in 'd1', expanded here\n"
        "a.mscl:4:12: note: in 'd2', expanded here\n"
        "a.mscl:5:12: note: in 'd3', expanded here\n"
        "a.mscl:2:12: note: 60 more expansions\n"
        "a.mscl:67:17: note: in 'd64', expanded here\n");
}

TEST_CASE("calls that double at each level come to an end") {
  const auto line = [](int i) {
    const std::string n = std::to_string(i), m = std::to_string(i - 1);
    return i == 0 ? std::string("let f0(x) = x\n")
                  : "let f" + n + "(x) = f" + m + "(f" + m + "(x))\n";
  };
  const std::string out =
      outcome("#max 100\n" + repeated_lines(60, line) + "let a = f59(1)\n" + kBody);
  CHECK(out.find("error: the program has not ended") != std::string::npos);
}

TEST_CASE("mistakes in a long loop stop it") {
  const std::string out = outcome(
      "collective allreduce(ranks: 1)\n"
      "rank 0 { tb 0 { for i in 0..60000000 { copy output[i + 1] <- input } } }\n");
  CHECK(out.starts_with("a.mscl:2:52: error: 'output' has no chunk 1 on rank 0\n"));
}
