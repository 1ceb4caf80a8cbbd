// Values: expressions that must be true, checked by `require`.
#include "compiler/evaluate/evaluate.h"

#include <catch2/catch.hpp>

#include "compiler/compile.h"

using namespace mscclc;

namespace {

/// What is said about a program that requires the condition.
std::string verdict(const std::string& condition, const std::string& header = "") {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add(
      "a.mscl", header + "\nrequire " + condition +
                    ", \"it\"\ncollective allreduce(ranks: 1)\nrank 0 { copy output <- input }\n");
  const auto program = parse_program(sources, file, {}, diagnostics);
  return render_text(diagnostics, sources);
}

void check_true(const std::string& condition, const std::string& header = "") {
  INFO(condition);
  CHECK(verdict(condition, header) == "");
}

}  // namespace

TEST_CASE("arithmetic rounds down and takes the divisor's sign") {
  check_true("7 / 2 == 3 and (0 - 7) / 2 == -4 and 7 / (0 - 2) == -4 and (0 - 7) / (0 - 2) == 3");
  check_true("7 % 3 == 1 and (0 - 7) % 3 == 2 and 7 % (0 - 3) == -2 and (0 - 7) % (0 - 3) == -1");
  check_true("(0 - 6) % 3 == 0 and (0 - 1) % 8 == 7");
  check_true("ceil_div(7, 2) == 4 and ceil_div(-7, 2) == -3 and ceil_div(-7, -2) == 4");
  check_true("ceil_div(6, 3) == 2 and ceil_div(0, 5) == 0 and ceil_div(7, -2) == -3");
  check_true("-9223372036854775807 - 1 < 0 and (-9223372036854775807 - 1) % -1 == 0");
  check_true("2 + 3 * 4 == 14 and (2 + 3) * 4 == 20 and 10 - 3 - 2 == 5 and 2 - -3 == 5");
}

TEST_CASE("bits and shifts") {
  check_true("(6 & 3) == 2 and (6 | 3) == 7 and (6 ^ 3) == 5");
  check_true("(1 << 62) == 4611686018427387904 and (-1 << 63) < 0 and (-8 >> 1) == -4");
  check_true("(0x10 >> 63) == 0 and (5 << 0) == 5");
}

TEST_CASE("comparison and logic") {
  check_true("1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3 and 1 != 2 and not (1 == 2)");
  check_true("true or false and false");
  check_true("true != false and true == true");
  check_true("(if 1 < 2 then 5 else 1 / 0) == 5");
  check_true("true or 1 / 0 == 1");
  check_true("not (false and 1 / 0 == 1)");
}

TEST_CASE("constants: lists") {
  check_true("0..3 == [0, 1, 2] and 3..3 == [] and 5..2 == []");
  check_true("len(0..8 except 3) == 7 and (0..8 except 3)[3] == 4 and (0..8 except 3)[2] == 2");
  check_true("0..4 except 0 == 1..4 and 0..4 except 3 == 0..3 and 0..4 except 9 == 0..4");
  check_true("0..6 except [1, 3, 3] == [0, 2, 4, 5] and 0..6 except 2..9 == 0..2");
  check_true("0..6 except 1 except 4 == [0, 2, 3, 5]");
  check_true("lo..lo + 4 except 9000000000000000000 == lo..lo + 4",
             "let lo = -9000000000000000000");
  check_true("[3, 1, 3] except 3 == [1] and len([]) == 0");
  check_true("[i * i for i in 1..4] == [1, 4, 9]");
  check_true("[10 * i + j for i in 0..3, j in 0..i where (i + j) % 2 == 1] == [10, 21]");
  check_true("[j for i in 0..3, j in 0..i] == [0, 0, 1]");
  check_true("len([0 for i in 0..3, j in 0..5]) == 15");
  check_true("[[1, 2, 3][i] for i in [2, 0]] == [3, 1] and 0..3 != 0..4");
}

TEST_CASE("functions") {
  check_true("min(3, 1, 2) == 1 and max(3, 1, 2) == 3 and min([5, 4]) == 4 and max(2..9) == 8");
  check_true("min(7) == 7");
  check_true("log2(1) == 0 and log2(8) == 3 and log2(9) == 3 and log2(9223372036854775807) == 62");
  check_true("half(3) == 1 and sum3([1, 2, 4]) == 7 and team(5) == 4..8",
             "param R = 8\nlet half(s) = R >> s, sum3(l) = l[0] + l[1] + l[2]\n"
             "let team(q) = q - q % 4 .. q - q % 4 + 4");
  // A function's names are its own, whatever the caller has of the same names.
  check_true("[f(x) + x for x in 0..3] == [3, 5, 7]", "let f(y) = len([x for x in 0..y + 3])");
  check_true("g(4) == [0, 1, 2, 3]", "let f(x) = x\nlet g(n) = [f(x) for x in 0..n]");
}

TEST_CASE("large ranges take no memory") {
  check_true("len(0..9223372036854775807) == 9223372036854775807");
  check_true("(0..1000000000000 except 7)[999999999998] == 999999999999");
  check_true("len(0..1GiB) == 1024 * 1MiB");
}

TEST_CASE("values of conditions appear in the message") {
  CHECK(verdict("a < 3 and b[1] == 2", "let a = 2, b = 5..8")
            .find("error: condition failed: \"it\" (a = 2, b = [5, 6, 7])") != std::string::npos);
}
