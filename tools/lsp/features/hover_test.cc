#include "tools/lsp/features/hover.h"

#include <catch2/catch.hpp>

#include "ir/ops/ops.h"
#include "tools/lsp/features/sample_test.h"

using namespace mscclc::lsp;
using mscclc::lsp::testing::kRace;
using mscclc::lsp::testing::Sample;

namespace {

std::string text_at(const std::string& with_mark) {
  Sample sample(with_mark);
  const Json shown = hover(sample.document, sample.mark());
  return shown.is_null() ? "" : shown["contents"]["value"].get<std::string>();
}

/// The race with a mark before the first `needle`.
std::string marked(const std::string& needle) {
  std::string text = kRace;
  return text.insert(text.find(needle), "^");
}

}  // namespace

TEST_CASE("hover: every op shows its row of the table") {
  for (const mscclc::OpInfo& op : mscclc::op_table()) {
    const std::string text = text_at("rank 0 {\n  ^" + std::string(op.name) + "\n}\n");
    INFO(op.name);
    CHECK(text.find(op.summary) != std::string::npos);
  }
}

TEST_CASE("hover: names show their declaration and values") {
  CHECK(text_at(marked("R = 4")) == "parameter `R`\n```mscl\nparam R = 4\n```\nvalue: `4`");
  CHECK(text_at(marked("r in")) == "loop variable `r`\n```mscl\nr in 0..R\n```\nvalues: `0..4`");
  CHECK(text_at(marked("s[r]")) == "buffer `s`\n```mscl\nbuffer s[others]\n```");
  CHECK(text_at(marked("input ;")) == "caller's buffer `input`");
}

TEST_CASE("hover: formats and orders show what they mean") {
  CHECK(text_at("rank 0 { buffer s[1] packets: ^LL128 }\n").find("120 bytes of data in 128") !=
        std::string::npos);
  CHECK(text_at("collective allreduce(ranks: 2, order: ^replicated)\n").find("same bits") !=
        std::string::npos);
}

TEST_CASE("hover: nothing is shown of numbers, comments and blanks") {
  CHECK(text_at("let a = ^12\n") == "");
  CHECK(text_at("# ^put\n") == "");
  CHECK(text_at("^\n") == "");
  CHECK(text_at("^") == "");
}
