#include "tools/bench/measure/clocks.h"

#include <catch2/catch.hpp>
#include <vector>

#include "executor/interpreter/step_kinds.h"
#include "executor/stamps.h"

namespace mscclc::bench {
namespace {

using namespace device;

struct Stamp {
  uint32_t what;
  uint64_t cycles;
};

/// `end`: 0: the block has not ended.
std::vector<uint64_t> row(const std::vector<Stamp>& stamps, uint64_t end = 0) {
  std::vector<uint64_t> words(kClockWords);
  words[kStampsDue] = stamps.size();
  words[kStampsTicks] = words[kStampsEnded] = end;
  for (size_t i = 0; i < stamps.size(); ++i) {
    words[kStampHead + i] = stamp_word(stamps[i].what, 3, stamps[i].cycles);
  }
  return words;
}

TEST_CASE("bench: stamps of blocks, by kind of block") {
  const auto put = static_cast<uint32_t>(StepKind::move_packets);
  std::vector<uint64_t> rows;
  for (const uint64_t cycles : {100, 300, 200}) {
    const auto one = row({{kStampProgram, 10}, {put, cycles}}, cycles + 50);
    rows.insert(rows.end(), one.begin(), one.end());
  }
  for (const auto& one : {row({{kStampCounts, 7}}), row({})}) {
    rows.insert(rows.end(), one.begin(), one.end());
  }
  CHECK(clocks_text(rows) ==
        "#    3 blocks: program 10, move_packets 200 (100 to 300), end 250 (150 to 350)\n"
        "#    1 blocks: counts 7\n");
  CHECK(clocks_text({}).empty());
}

}  // namespace
}  // namespace mscclc::bench
