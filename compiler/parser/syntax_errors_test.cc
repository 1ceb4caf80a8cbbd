// Mistakes in texts: every message whole (testdata/syntax_errors.txt), and that no text, however
// broken, does harm.
#include <catch2/catch.hpp>
#include <ctime>
#include <random>

#include "compiler/parser/parser.h"
#include "compiler/testing/text_cases.h"
#include "compiler/tokens/lexer.h"
#include "ir/support/read_file.h"

using namespace mscclc;

namespace {

Diagnostics errors_of(Sources& sources, std::string text) {
  const FileId id = sources.add("a.mscl", std::move(text));
  ast::Ast ast(sources);
  Diagnostics diagnostics;
  const bool good = parse_file(sources, id, ast, diagnostics) != nullptr;
  CHECK(good != diagnostics.has_errors());
  return diagnostics;
}

std::string messages(std::string text) {
  Sources sources;
  const Diagnostics diagnostics = errors_of(sources, std::move(text));
  return render_text(diagnostics, sources, 1000);
}

/// The only error's "line:column: message".
std::string only_error(std::string text) {
  Sources sources;
  const Diagnostics diagnostics = errors_of(sources, std::move(text));
  REQUIRE(diagnostics.all().size() == 1);
  const Diagnostic& d = diagnostics.all()[0];
  return std::to_string(d.span.line) + ":" + std::to_string(d.span.column) + ": " + d.message;
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("every message") {
  CHECK(each_case("compiler/testdata/syntax_errors.txt", [](const TextCase& c) {
          INFO(c.name);
          CHECK(messages(c.text) == c.expected);
        }) > 60);
}

TEST_CASE("characters that a text file cannot show") {
  CHECK(only_error("let a = 1\x01") == "1:10: unknown character '\\x01'");
  CHECK(only_error(std::string("let a\0= 1", 9)) == "1:6: unknown character '\\x00'");
  CHECK(only_error("let a = 1 \xc3\xa9") == "1:11: unknown character '\xc3\xa9'");
  CHECK(only_error("# caf\xe9 \xff\nprogram x\n# \xff") ==
        "1:6: the text is not UTF-8: byte '\\xe9'");
  CHECK(only_error("let a = \xff 1") == "1:9: the text is not UTF-8: byte '\\xff'");
}

TEST_CASE("nesting is bounded") {
  const std::string deep =
      "the expression nests deeper than 256 levels; name parts of it with 'let'";
  CHECK(only_error("let a = " + repeated("(", 300) + "1" + repeated(")", 300)) == "1:265: " + deep);
  CHECK(only_error("let a = " + repeated("[", 100000)) == "1:265: " + deep);
  CHECK(only_error("let a = " + repeated("f(", 300) + "1" + repeated(")", 300)) ==
        "1:522: " + deep);
  CHECK(only_error("let a = " + repeated("not ", 300) + "1") == "1:1033: " + deep);
  CHECK(only_error("let a = " + repeated("if a then b else ", 300) + "1") == "1:4361: " + deep);
  CHECK(only_error("let a = x" + repeated("[0]", 300)) == "1:776: " + deep);
  CHECK(only_error("let a = 1" + repeated(" + 1", 300)) == "1:1033: " + deep);
  CHECK(messages("let a = 1" + repeated(" - (1", 200) + repeated(")", 200) +
                 repeated(" + (1", 200) + repeated(")", 200))
            .empty());
  CHECK(messages("let a = 1" + repeated(" + 1", 255)).empty());
  CHECK(messages("let a = " + repeated("(", 256) + "1" + repeated(")", 256)).empty());
  CHECK(only_error("rank 0 {" + repeated("tb 0 {", 100000) + repeated("}", 100001)) ==
        "1:392: blocks nest deeper than 64 levels");
  CHECK(only_error("rank 0 { for " + repeated("x in l, ", 64) + "x in l {} }") ==
        "1:526: more than 64 loop variables");
  CHECK(messages("rank 0 { if a {} " + repeated("else if b {} ", 10000) + "}").empty());
}

TEST_CASE("many mistakes are not all reported") {
  Sources sources;
  const Diagnostics diagnostics = errors_of(sources, repeated("$ ", 100000));
  CHECK(diagnostics.all().size() == kMaxErrors + 1);
  CHECK(diagnostics.all().back().message == "too many errors; the rest of the file was not read");
}

TEST_CASE("hostile texts take linear time") {
  const char* pieces[] = {"(",           "[",    "{",  "}", ")",      "rank 0 {", "}\n rank 0 {\n",
                          "a.b[",        "\"",   "#",  ",", ";",      "tb ",      "-",
                          "else {",      "1 ..", "\n", "@", "if a {", "\\\"",     "x",
                          "put a <- b\n"};
  for (const char* piece : pieces) {
    INFO(piece);
    const std::clock_t start = std::clock();  // the process's, whatever else runs
    messages(repeated(piece, 200000));
    messages("rank 0 {" + repeated(piece, 200000));
    CHECK((std::clock() - start) / CLOCKS_PER_SEC < 20);
  }
}

TEST_CASE("broken programs") {
  const std::string program = read_file("plans/allreduce_hier.mscl").value();
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 3000; ++round) {
    std::string text = program;
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(text.size()), length = std::min(below(12), text.size() - at);
      if (below(2) == 0) {
        text.erase(at, length);
      } else {
        text.insert(below(text.size()), text.substr(at, length));
      }
    }
    Sources sources;
    const Diagnostics diagnostics = errors_of(sources, text);
    for (const Diagnostic& d : diagnostics.all()) {
      INFO(text);
      CHECK(d.span.valid());
      CHECK(d.span.begin <= d.span.end);
      CHECK(d.span.end <= text.size());
    }
    CHECK(render_text(diagnostics, sources).empty() != diagnostics.has_errors());
  }
}
