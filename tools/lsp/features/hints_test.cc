#include "tools/lsp/features/hints.h"

#include <catch2/catch.hpp>
#include <map>

#include "tools/lsp/features/placements.h"
#include "tools/lsp/features/sample_test.h"

using namespace mscclc::lsp;
using mscclc::lsp::testing::kRace;
using mscclc::lsp::testing::Sample;

namespace {

constexpr mscclc::lsp::Range kAll{{0, 0}, {1000, 0}};

/// By line: the labels, separated by blanks.
std::map<uint32_t, std::string> labels(Document& document, const mscclc::lsp::Range& range = kAll) {
  std::map<uint32_t, std::string> out;
  for (const Json& hint : hints(document, range)) {
    std::string& line = out[position_of(hint["position"])->line];
    line += (line.empty() ? "" : " | ") + hint["label"].get<std::string>();
  }
  return out;
}

}  // namespace

TEST_CASE("hints: blocks that were chosen, syncs that were added, who uses a channel") {
  Sample sample(kRace);
  const auto all = labels(sample.document);
  CHECK(all.at(5) == "signals: tb 0, waits: tb 0");
  CHECK(all.at(6) == "tb 0 | sync | tb 0");
  CHECK(all.at(7) == "tb 0");
  CHECK(all.at(9) == "sync | tb 0");
  CHECK_FALSE(all.contains(3));
}

TEST_CASE("hints: only of the lines that are asked for") {
  Sample sample(kRace);
  const auto some = labels(sample.document, {{7, 0}, {7, 99}});
  CHECK(some.size() == 1);
  CHECK(some.contains(7));
}

TEST_CASE("hints: where the author chose the blocks, none are shown; ops that were joined are") {
  Sample sample(
      "param R = 2\ncollective allreduce(ranks: R, chunks: R)\nrank r in 0..R {\n"
      "  let p = 1 - r\n  channel ch[q in [p]] = memory(q)\n  tb 0 {\n"
      "    signal ch[p] relaxed\n    wait ch[p] relaxed\n"
      "    read_reduce output[r] <- input[r], ch[p].input[r]\n"
      "    put ch[p].output[r] <- output[r]\n    signal ch[p]\n    wait ch[p]\n  }\n}\n");
  const auto all = labels(sample.document);
  CHECK(all.at(8) == "sync | in read_reduce_send");
  CHECK(all.at(9) == "in read_reduce_send");
  CHECK(all.at(10) == "sync");
  CHECK_FALSE(all.contains(11));
}

TEST_CASE("hints: none while a program does not compile") {
  Sample sample(kRace + "x\n");
  CHECK(labels(sample.document).empty());
}

TEST_CASE("numbers in a row become ranges") {
  CHECK(text_of(Numbers{}) == "");
  CHECK(text_of(Numbers{3}) == "3");
  CHECK(text_of(Numbers{0, 1, 2, 5, 7, 8}) == "0..3, 5, 7..9");
}
