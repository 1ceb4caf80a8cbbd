// Declarations of row functions: what they become, how they are printed, and every mistake in them
// with its whole text.
#include "compiler/rows/read_rows.h"

#include <catch2/catch.hpp>

#include "compiler/rows/library.h"
#include "ir/rows/print_row.h"
#include "ir/support/read_file.h"

namespace mscclc::rows {
namespace {

struct ReadRows {
  std::optional<std::vector<Function>> functions;
  std::string messages;
};

ReadRows read(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  auto functions = read_rows(sources, sources.add("a.mscl", text), diagnostics);
  return {std::move(functions), render_text(diagnostics, sources, 1000)};
}

/// One function without mistakes, printed.
std::string printed(const std::string& text) {
  const ReadRows rows = read(text);
  INFO(rows.messages);
  REQUIRE(rows.functions);
  REQUIRE(rows.functions->size() == 1);
  return print(rows.functions->front());
}

/// An expression over x, y (columns), g (groups of 16) and s, printed as it is read.
std::string expression(const std::string& text) {
  const std::string head =
      "row f(x: row T, y: columns f32, g: groups(16) f32, s: scalar f32) {\n  out a: row T = ";
  const std::string all = printed(head + text + "\n}");
  CHECK(printed(all) == all);
  CHECK(all.starts_with(head));
  return all.substr(head.size(), all.size() - head.size() - 3);
}

/// Messages about a function with this body.
std::string body(const std::string& text) {
  const ReadRows rows = read("row f(x: row T) {\n" + text + "\n}\n");
  CHECK_FALSE(rows.functions);
  return rows.messages;
}

TEST_CASE("the library is read without a word, and printing it gives the same functions") {
  const ReadRows rows = read(std::string(library_text()));
  CHECK(rows.messages.empty());
  REQUIRE(rows.functions);
  CHECK(rows.functions->size() == 20);
  std::string all;
  for (const Function& function : *rows.functions) all += print(function);
  std::string again;
  const ReadRows second = read(all);
  for (const Function& function : *second.functions) again += print(function);
  CHECK(again == all);
}

TEST_CASE("the page has the library's function as its example, and every word") {
  const std::string page = read_file("docs/design/rows.md").value();
  const size_t begin = page.find("row add_rmsnorm(");
  REQUIRE(begin != page.npos);
  const size_t end = page.find("\n}\n", begin);
  CHECK(page.substr(begin, end + 3 - begin) == print(library_function("add_rmsnorm")));
#define ROW_OP(name, ...) CHECK(page.find(#name "(x") != page.npos);
#define ROW_REDUCTION(name, ...) CHECK(page.find("`" #name "(x for") != page.npos);
#define ROW_TYPE(name, bytes) \
  CHECK((Type::name == Type::f32 || page.find("`" #name "(x)`") != page.npos));
#define ROW_KIND(name, ...) CHECK(page.find("\n| `" #name) != page.npos);
#include "ir/rows/row_words.def"
#undef ROW_OP
#undef ROW_REDUCTION
#undef ROW_TYPE
#undef ROW_KIND
}

TEST_CASE("a declaration in canonical layout") {
  CHECK(
      printed("row f (\n x : row T ,\n e : scalar f32 ) round : once { let a=x*x ; let b = a\n"
              "out y: row e4m3 = T ( b ) / ( sum(a)/columns + e ); out s: token f32 = max(b) }") ==
      "row f(x: row T, e: scalar f32) round: once {\n"
      "  let a = x * x\n"
      "  out y: row e4m3 = T(a) / (mean(a) + e)\n"
      "  out s: token f32 = max(a)\n"
      "}\n");
  CHECK(printed("row f(x: row T) round: chain { out y: row T = x }") ==
        "row f(x: row T) {\n  out y: row T = x\n}\n");
}

TEST_CASE("expressions: precedence, and no parentheses that are not needed") {
  CHECK(expression("x + y * s") == "x + y * s");
  CHECK(expression("(x + y) * s") == "(x + y) * s");
  CHECK(expression("x - (y - s)") == "x - (y - s)");
  CHECK(expression("(x - y) - s") == "x - y - s");
  CHECK(expression("x / (y * s)") == "x / (y * s)");
  CHECK(expression("-x * -(y + 1)") == "-x * -(y + 1)");
  CHECK(expression("- -x") == "--x");
  CHECK(expression("x +\n y *\n s") == "x + y * s");
  CHECK(expression("(x\n + y)") == "x + y");
  CHECK(expression("if x > 0 then x else 0.5 * x") == "if 0 < x then x else 0.5 * x");
  CHECK(expression("(if x != y then x else y) + 1") == "(if x == y then y else x) + 1");
  CHECK(expression("if x >= s\n then 1\n else if x < y then 2 else 3") ==
        "if s <= x then 1 else if x < y then 2 else 3");
  CHECK(expression("max(x for 16) * g + fma(x, y, s)") == "max(x for 16) * g + fma(x, y, s)");
  CHECK(expression("min(x, 0) + min(x)") == "min(x, 0) + min(x)");
  CHECK(expression("x * (sum(x) / columns)") == "x * mean(x)");
  CHECK(expression("f16(bf16(exp(x)))") == "f16(bf16(exp(x)))");
}

TEST_CASE("numbers keep their bits") {
  CHECK(expression("x + 1e-5 + 0.1 + 448 + 1e30 + 16777217") ==
        "x + 1e-05 + 0.1 + 448 + 1e+30 + 16777216");
  CHECK(expression("x + 0x10 + 1KiB + 1.50 + 2e0 + 1e-45") == "x + 16 + 1024 + 1.5 + 2 + 1e-45");
  CHECK(body("out y: row T = x + 1e40") ==
        "a.mscl:2:20: error: the number does not fit in f32; write a nearer one\n"
        "out y: row T = x + 1e40\n                   ^~~~\n");
}

TEST_CASE("mistakes in expressions") {
  CHECK(body("let weight = x\nout y: row T = wieght") ==
        "a.mscl:3:16: error: unknown name 'wieght'; did you mean 'weight'?\n"
        "out y: row T = wieght\n               ^~~~~~\n");
  CHECK(
      body("out y: row T = x * length") ==
      "a.mscl:2:20: error: unknown name 'length'; declare it as a parameter or with 'let', above\n"
      "out y: row T = x * length\n                   ^~~~~~\n");
  CHECK(body("out y: row T = tanh(x)") ==
        "a.mscl:2:16: error: row functions know no function 'tanh'; they know 'abs', 'sqrt', "
        "'rsqrt', "
        "'exp', 'pow2_up', 'pow2_down', 'min', 'max', 'fma', 'sum', 'mean' and the types, which "
        "round\n"
        "out y: row T = tanh(x)\n               ^~~~\n");
  CHECK(body("out y: row T = abs") ==
        "a.mscl:2:16: error: 'abs' is a function; write its arguments in parentheses\n"
        "out y: row T = abs\n               ^~~\n");
  CHECK(body("out y: row T = abs(x, x)") ==
        "a.mscl:2:16: error: 'abs' takes 1 argument, not 2\nout y: row T = abs(x, x)\n             "
        "  ^~~\n");
  CHECK(body("out y: row T = fma(x)") ==
        "a.mscl:2:16: error: 'fma' takes 3 arguments, not 1\nout y: row T = fma(x)\n               "
        "^~~\n");
  CHECK(body("out y: row T = x * sum(x, 128)") ==
        "a.mscl:2:20: error: 'sum' takes 1 argument, not 2; over groups of columns write "
        "'(value for 128)'\nout y: row T = x * sum(x, 128)\n                   ^~~\n");
  CHECK(body("out y: row T = x * sum(sum(x))") ==
        "a.mscl:2:20: error: 'sum' goes over the columns, and its argument is one value for the "
        "row; use "
        "it as it is\nout y: row T = x * sum(sum(x))\n                   ^~~~~~~~~~~\n");
  CHECK(body("out y: row T = x * max(x for 100)") ==
        "a.mscl:2:30: error: a group has a power of two columns, from 2 to 4096\n"
        "out y: row T = x * max(x for 100)\n                             ^~~\n");
  CHECK(body("out y: row T = max(x for 16) + max(x for 32)") ==
        "a.mscl:2:16: error: values of groups of 16 and of 32 columns do not go together; take "
        "groups of "
        "one size\nout y: row T = max(x for 16) + max(x for 32)\n               "
        "^~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n");
  CHECK(body("out y: row T = if x then 1 else 2") ==
        "a.mscl:2:21: error: expected '<', '<=', '>', '>=', '==' or '!=' before 'then'\n"
        "out y: row T = if x then 1 else 2\n                    ^~~~\n");
  for (const std::string wrong : {"^ 2", "% 2", "[0]", "if x < 1 else 2"}) {
    const std::string line = "out y: row T = x " + wrong,
                      token = wrong.substr(0, wrong[0] == 'i' ? 2 : 1);
    CHECK(
        body(line) ==
        "a.mscl:2:18: error: expected '+', '-', '*', '/' or the end of the statement (there is no "
        "other operator, and no index; a choice is 'if a < b then x else y') before '" +
            token + "'\n" + line + "\n                 " +
            std::string(token.size(), '^').replace(1, token.npos, token.size() - 1, '~') + "\n");
  }
  CHECK(body("out y: row T = x *") == "a.mscl:3:1: error: expected a value before '}'\n}\n^\n");
}

TEST_CASE("mistakes in declarations") {
  CHECK(
      body("out y: token T = x") ==
      "a.mscl:2:18: error: 'y' holds one value for the row, and this is one value for each column; "
      "reduce it with 'max' or 'sum', or declare another kind of result\n"
      "out y: token T = x\n                 ^\n");
  CHECK(body("out y: groups(16) T = max(x for 32)") ==
        "a.mscl:2:23: error: 'y' holds one value for each 16 columns, and this is one value for "
        "each 32 "
        "columns; reduce it with 'max' or 'sum', or declare another kind of result\n"
        "out y: groups(16) T = max(x for 32)\n                      ^~~~~~~~~~~~~\n");
  CHECK(body("out y: scalar T = 1") ==
        "a.mscl:2:8: error: expected one of 'row', 'groups', 'token' before 'scalar'\n"
        "out y: scalar T = 1\n       ^~~~~~\n");
  CHECK(body("out y: row u8 = 1") ==
        "a.mscl:2:12: error: expected one of the types 'T', 'f32', 'f16', 'bf16', 'e4m3', 'e5m2', "
        "'e8m0' "
        "before 'u8'\nout y: row u8 = 1\n           ^~\n");
  CHECK(body("let x = 1\nout y: row T = x") ==
        "a.mscl:2:5: error: 'x' is declared twice\nlet x = 1\n    ^\n"
        "a.mscl:1:7: note: the first is here\n");
  CHECK(body("out y: row T = x\nout y: row T = x") ==
        "a.mscl:3:5: error: 'y' is declared twice\nout y: row T = x\n    ^\n"
        "a.mscl:2:5: note: the first is here\n");
  CHECK(body("let max = 1\nout y: row T = x") ==
        "a.mscl:2:5: error: 'max' is a word of row functions; choose another name\n"
        "let max = 1\n    ^~~\n");
  CHECK(body("let a = x") ==
        "a.mscl:1:5: error: the row function 'f' has no result; end it with 'out y: row T = …'\n"
        "row f(x: row T) {\n    ^\n");
  CHECK(body("y = x\nout y: row T = x") ==
        "a.mscl:2:1: error: expected 'let' or 'out' before 'y'\ny = x\n^\n");
  CHECK(read("put x").messages == "a.mscl:1:1: error: expected 'row' before 'put'\nput x\n^~~\n");
  CHECK(read("row f(x: T) { out y: row T = x }").messages ==
        "a.mscl:1:10: error: expected one of 'row', 'columns', 'groups', 'token', 'scalar' before "
        "'T'\n"
        "row f(x: T) { out y: row T = x }\n         ^\n");
  CHECK(read("row f(x: row T) {\n  out y: row T = x\n").messages ==
        "a.mscl:1:17: error: the '{' is not closed\nrow f(x: row T) {\n                ^\n");
  const std::string f = "row f(x: row T) { out y: row T = x }\n";
  CHECK(read(f + f).messages ==
        "a.mscl:2:5: error: 'f' is declared twice\nrow f(x: row T) { out y: row T = x }\n    ^\n"
        "a.mscl:1:5: note: the first is here\n");
}

TEST_CASE("each mistake is reported once, and those after it too") {
  CHECK(body("let a = abs()\nlet b = a * 2\nout y: row T = b\nout z: row T = x +* x") ==
        "a.mscl:2:13: error: expected a value before ')'\nlet a = abs()\n            ^\n"
        "a.mscl:5:19: error: expected a value before '*'\nout z: row T = x +* x\n                  "
        "^\n");
}

TEST_CASE("what is not used is a warning") {
  const ReadRows rows = read("row f(x: row T, w: columns T) {\n  let a = x\n  out y: row T = x\n}");
  CHECK(rows.functions);
  CHECK(
      rows.messages ==
      "a.mscl:1:17: warning: 'w' is not used\nrow f(x: row T, w: columns T) {\n                ^\n"
      "a.mscl:2:7: warning: 'a' is not used\n  let a = x\n      ^\n");
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST_CASE("hostile declarations cost little") {
  CHECK(first_line(body("out y: row T = " + repeated("(", 100000))) ==
        "a.mscl:2:80: error: the expression nests deeper than 64 levels; name parts of it with "
        "'let'");
  CHECK(first_line(body("out y: row T = " + repeated("-", 100000) + "x")) ==
        "a.mscl:2:79: error: the expression nests deeper than 64 levels; name parts of it with "
        "'let'");
  CHECK(first_line(body("out y: row T = x" + repeated(" + x", 2000))) ==
        "a.mscl:2:16: error: the row function has more than 1024 values; divide it into several");
  CHECK(first_line(body("out y: row T = x" + repeated(" + max(x)", 100))) ==
        "a.mscl:2:308: error: the row function has more than 32 reductions; name one with 'let' to "
        "use "
        "it again");
  std::string params = "x0: row T", results = "out y0: row T = x0";
  for (int i = 1; i < 20; ++i) {
    params += ", x" + std::to_string(i) + ": row T";
    results += "\nout y" + std::to_string(i) + ": row T = x0";
  }
  CHECK(first_line(read("row f(" + params + ") {\n" + results + "\n}").messages) ==
        "a.mscl:1:189: error: a row function has at most 16 parameters");
  CHECK(first_line(read("row f(x0: row T) {\n" + results + "\n}").messages) ==
        "a.mscl:10:5: error: a row function has at most 8 results");
  for (const char* piece :
       {"(", "row ", "row f(", "{", "}", "let a = ", "out ", "if x < ", "x ", "\n"}) {
    CHECK(read(repeated(piece, 20000)).functions.has_value() == (*piece == '\n'));
  }
}

TEST_CASE("broken texts do no harm") {
  const std::string text(library_text());
  uint64_t state = 1;
  const auto below = [&](size_t n) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<size_t>(state >> 33) % n;
  };
  int good = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string broken = text;
    for (size_t edits = 1 + below(3); edits > 0; --edits) {
      const size_t at = below(broken.size()), length = std::min(below(12), broken.size() - at);
      if (below(2) == 0) {
        broken.erase(at, length);
      } else {
        broken.insert(below(broken.size()), broken.substr(at, length));
      }
    }
    const ReadRows rows = read(broken);
    INFO(broken);
    CHECK(rows.functions.has_value() == (rows.messages.find("error:") == std::string::npos));
    good += rows.functions ? 1 : 0;
  }
  CHECK(good > 100);
}

}  // namespace
}  // namespace mscclc::rows
