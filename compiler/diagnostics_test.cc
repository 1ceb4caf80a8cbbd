// Every message of docs/design/messages.md but those of 'Text' (syntax_errors_test.cc):
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
TEST_CASE("rows") { CHECK(check_file("rows") > 25); }

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

/// Texts of 40 definitions that double: `first`, then `next` with % for the number and $ for the
/// one before.
std::string doubling(const std::string& first, const std::string& next) {
  return first + repeated_lines(40, [&](int i) {
           std::string line = next + "\n";
           for (size_t at; (at = line.find('%')) != std::string::npos;) {
             line.replace(at, 1, std::to_string(i + 1));
           }
           for (size_t at; (at = line.find('$')) != std::string::npos;) {
             line.replace(at, 1, std::to_string(i));
           }
           return line;
         });
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST_CASE("40 doublings are refused as soon as it is plain that they are too many") {
  // Ops and calls of defs are counted before any is made.
  const std::string head = "collective allreduce(ranks: 1)\n";
  CHECK(
      first_line(
          outcome(doubling("def d0() { copy output <- input }\n", "def d%() { d$() ; d$() }") +
                  head + "rank 0 { tb 0 { d40() } }\n")) ==
      "a.mscl:43:17: error: a loop of 2199023255551 rounds in all, where 67108879 of the program's "
      "67108880 steps are left");
  CHECK(first_line(outcome(doubling("def d0() {}\n", "def d%() { d$() ; d$() }") + head +
                           "rank 0 { tb 0 { copy output <- input ; d40() } }\n"))
            .find("error: a loop of 2199023255551 rounds in all") != std::string::npos);
  // A chain of expansions is kept, so it costs more than other steps.
  CHECK(first_line(outcome(doubling("def d0(x) {}\n", "def d%(x) { if x { d$(x) ; d$(x) } }") +
                           head + "rank 0 { tb 0 { d40(true) ; copy output <- input } }\n"))
            .find("error: the program has not ended after 6710") != std::string::npos);
  // A function is called until the steps end, a list grows until it is too long.
  CHECK(first_line(outcome(doubling("let f0(x) = x\n", "let f%(x) = f$(x) + f$(x)") +
                           "let a = f40(1)\n" + kBody))
            .find("error: the program has not ended after 67108864 steps") != std::string::npos);
  CHECK(first_line(outcome(doubling("let l0 = [1]\n", "let l% = l$ + l$") + kBody)) ==
        "a.mscl:25:11: error: a list of 16777216 elements is too long");
  CHECK(outcome(doubling("let n0 = 1\n", "let n% = n$ + n$") + "require n40 == 2 ** 40, \"\"\n" +
                kBody)
            .empty());
}

TEST_CASE("loops without ops are refused before their first round") {
  const auto loop = [](const std::string& body) {
    return first_line(
        outcome("collective allreduce(ranks: 1)\nrank 0 { tb 0 { copy output <- input\n" + body +
                " } }\n"));
  };
  CHECK(loop("for i in 0..1000000000 {}").find("error: a loop of 1000000000 rounds") !=
        std::string::npos);
  CHECK(loop("for i in 0..1000 { for j in 0..1000 { for k in 0..1000 {} } }")
            .find("error: a loop of 1001001000 rounds") != std::string::npos);
  CHECK(loop("for i in 0..1000000000 { if i < 0 { sync } }")
            .find("error: the program has not ended after 67108") != std::string::npos);
  CHECK(loop("for i in 0..100000, j in 0..100000 where j < 0 { let x = i }").find("error:") !=
        std::string::npos);
  CHECK(loop("let x = sum(0..1000000000)").find("error: a loop of 1000000000 rounds") !=
        std::string::npos);
}

TEST_CASE("mistakes in a long loop stop it") {
  const std::string out = outcome(
      "collective allreduce(ranks: 1)\n"
      "rank 0 { tb 0 { for i in 0..60000000 { copy output[i + 1] <- input } } }\n");
  CHECK(out.starts_with("a.mscl:2:52: error: 'output' has no chunk 1 on rank 0\n"));
}
