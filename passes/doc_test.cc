// The examples of docs/design/passes.md: a comment names the passes (and limits of the target),
// then come the program and what they make of rank 0, each in a fence.
#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "ir/support/read_file.h"
#include "passes/testing/test_text.h"

namespace mscclc {
namespace {

struct Example {
  std::vector<std::string> passes;
  OpLimits limits;
  std::string program, result;
};

/// The next fenced block from `at` on, which moves to its end.
std::string fenced(const std::string& page, size_t& at) {
  const size_t begin = page.find("```mscl\n", at) + 8, end = page.find("```\n", begin);
  REQUIRE(end != std::string::npos);
  at = end + 4;
  return page.substr(begin, end - begin);
}

std::vector<Example> read_examples() {
  const std::string page = read_file("docs/design/passes.md").value(), mark = "<!-- example: ";
  std::vector<Example> examples;
  for (size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at)) {
    Example example;
    const size_t end = page.find(" -->", at);
    std::stringstream names(page.substr(at + mark.size(), end - at - mark.size()));
    for (std::string name; names >> name;) {
      if (name.back() == ',') name.pop_back();
      constexpr std::string_view kOperands = "operands=";
      if (name.starts_with(kOperands)) {
        example.limits.operands = static_cast<uint32_t>(std::stoul(name.substr(kOperands.size())));
      } else {
        example.passes.push_back(name);
      }
    }
    at = end;
    example.program = fenced(page, at);
    example.result = fenced(page, at);
    examples.push_back(example);
  }
  return examples;
}

/// Rank 0 in IR text, without source locations.
std::string rank_text(const Program& program) {
  const std::string ir = print_ir(program);
  const size_t begin = ir.find("rank 0 {"), end = ir.find("\n}\n", begin) + 3;
  std::stringstream lines(ir.substr(begin, end - begin));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    text += line.substr(0, line.find("  @")) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("docs/design/passes.md shows what the passes do") {
  const std::vector<Example> examples = read_examples();
  REQUIRE(examples.size() >= passes().size());
  for (const Example& example : examples) {
    Program program = testing::parse("program example\n" + example.program);
    PassOptions options;
    options.only = example.passes;
    options.limits = example.limits;
    options.verify_each = true;
    Diagnostics diagnostics;
    REQUIRE(run_passes(program, options, diagnostics));
    CHECK(rank_text(program) == example.result);
  }
}

TEST_CASE("docs/design/passes.md names every pass") {
  const std::string page = read_file("docs/design/passes.md").value();
  for (const PassInfo& pass : passes()) {
    CHECK(page.find("## " + std::string(pass.name) + "\n") != std::string::npos);
  }
}

}  // namespace mscclc
