#include "tools/lsp/features/completion.h"

#include <catch2/catch.hpp>
#include <set>

#include "ir/ops/ops.h"
#include "tools/lsp/features/sample_test.h"

using namespace mscclc::lsp;
using mscclc::lsp::testing::Sample;

namespace {

using Labels = std::set<std::string>;

Labels labels_at(const std::string& with_mark) {
  Sample sample(with_mark);
  Labels labels;
  for (const Json& item : completion(sample.document, sample.mark())) labels.insert(item["label"]);
  return labels;
}

/// A rank's body that holds the line.
Labels labels_in_body(const std::string& line) {
  return labels_at(
      "param R = 4, F = LL16\nlet f(x) = x\ndef move(c) { signal c }\n"
      "collective allgather(ranks: R)\nrank r in 0..R {\n  buffer inbox[R]\n"
      "  channel ch[p in 0..R except r] = memory(p)\n  semaphore done\n" +
      line + "\n}\n");
}

}  // namespace

TEST_CASE("completion: statements, all ops, and defs at the beginning of a line of a body") {
  const Labels labels = labels_in_body("  ^");
  for (const mscclc::OpInfo& op : mscclc::op_table()) {
    INFO(op.name);
    CHECK(labels.contains(std::string(op.name)));
  }
  for (const char* word : {"tb", "for", "if", "let", "buffer", "channel", "group", "move"}) {
    INFO(word);
    CHECK(labels.contains(word));
  }
  for (const char* word : {"param", "collective", "in", "inbox", "R"}) {
    INFO(word);
    CHECK_FALSE(labels.contains(word));
  }
}

TEST_CASE("completion: items at the beginning of a line of the file") {
  const Labels labels = labels_at("param R = 4\n^\n");
  for (const char* word : {"param", "collective", "select", "launch", "def", "rank", "let"}) {
    INFO(word);
    CHECK(labels.contains(word));
  }
  CHECK_FALSE(labels.contains("put"));
  CHECK_FALSE(labels.contains("tb"));
}

TEST_CASE("completion: buffers after the dot of a channel") {
  CHECK(labels_in_body("  put ch[1].^") == Labels{"inbox", "input", "output"});
  CHECK(labels_in_body("  put ch[1].in^") == Labels{"inbox", "input", "output"});
}

TEST_CASE("completion: names that are visible, and functions, within a statement") {
  const Labels labels = labels_in_body("  for q in 0..R { put ch[q].inbox[r] <- ^ }");
  for (const char* word : {"R", "r", "q", "f", "inbox", "ch", "input", "len", "min", "relaxed"}) {
    INFO(word);
    CHECK(labels.contains(word));
  }
  CHECK_FALSE(labels.contains("p"));
  CHECK_FALSE(labels.contains("put"));
  CHECK_FALSE(labels.contains("x"));
}

TEST_CASE("completion: words of options") {
  const Labels formats = labels_in_body("  buffer t[R] packets: ^");
  for (const char* word : {"LL8", "LL16", "LL128", "sentinel", "F"}) CHECK(formats.contains(word));
  CHECK_FALSE(formats.contains("put"));
  CHECK(labels_in_body("  channel up = ^") == Labels{"memory", "port", "switch"});
  CHECK(labels_at("select ^\n").contains("nodes"));
  CHECK(labels_at("launch ^\n").contains("instances"));
  CHECK_FALSE(labels_at("launch ^\n").contains("foreign"));  // IR text's
  CHECK(labels_at("collective ^\n").contains("alltoallv"));
  CHECK(labels_at("collective allreduce(ranks: 2, order: ^\n").contains("replicated"));
  CHECK(labels_at("select dtypes: ^\n").contains("bf16"));
}

TEST_CASE("completion: none in comments, none where a range is being written") {
  CHECK(labels_at("# ^\n").empty());
  CHECK(labels_in_body("  for q in 0..^").contains("R"));
}

TEST_CASE("completion: names of the last text that could be read") {
  Sample sample("param R = 4\nlet a = ^R\n");
  REQUIRE(sample.document.names() != nullptr);
  sample.document.replace(std::string("param R = 4\nrank r in 0..R {\n  tb 0 {\n let b = "));
  REQUIRE_FALSE(sample.document.is_current());
  Labels labels;
  for (const Json& item : completion(sample.document, {3, 9})) labels.insert(item["label"]);
  CHECK(labels.contains("R"));
}
