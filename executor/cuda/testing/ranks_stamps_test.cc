// Stamps of the kernels: every step of a block is there, in order, whichever kernel runs it.
#include <catch2/catch.hpp>
#include <map>

#include "executor/cuda/testing/ranks.h"
#include "executor/stamps.h"
#include "executor/testing/op_plans.h"
#include "executor/testing/test_plans.h"

namespace mscclc::cuda {
namespace {

using device::BlockStamp;
using device::StepKind;
using testing::TestProgram;

/// Runs a call; the stamps of all blocks.
std::vector<uint64_t> stamps_of(const Program& program, const CudaRanks::Options& options) {
  Diagnostics diagnostics;
  CudaRanks gpu(program);
  Call call{.part_bytes = 4096};
  bool fine = gpu.build(diagnostics) && check_call(program, call, diagnostics) &&
              gpu.prepare(call, options, diagnostics) && gpu.run(diagnostics);
  std::vector<uint64_t> words;
  fine = fine && gpu.read_stamps(words, diagnostics);
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(fine);
  return words;
}

/// The steps of a row, after checking that its times ascend.
std::vector<BlockStamp> steps_of(const uint64_t* row, uint32_t words) {
  CHECK(row[device::kStampsEnded] >= row[device::kStampsBegan]);
  CHECK(row[device::kStampsBegan] > 0);
  const uint64_t due = row[device::kStampsDue];
  REQUIRE(device::kStampHead + due <= words);
  std::vector<BlockStamp> steps;
  uint64_t last = 0;
  for (uint64_t i = 0; i < due; ++i) {
    const BlockStamp stamp = device::stamp_of_word(row[device::kStampHead + i]);
    CHECK(stamp.ticks >= last);
    last = stamp.ticks;
    if (stamp.what < device::kStampProgram) steps.push_back(stamp);
  }
  CHECK(row[device::kStampsTicks] >= last);
  return steps;
}

constexpr uint32_t kWords = 64;

void check_exchange(const CudaRanks::Options& options) {
  const TestProgram t = testing::exchange();
  const std::vector<uint64_t> words = stamps_of(t.program, options);
  REQUIRE(words.size() == 2 * kWords);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const std::vector<BlockStamp> steps = steps_of(words.data() + rank * kWords, kWords);
    REQUIRE(steps.size() == t.program.ranks[rank].ops.size());
    for (uint32_t i = 0; i < steps.size(); ++i) CHECK(steps[i].source == i);
    CHECK(steps[1].what == static_cast<uint32_t>(StepKind::wait));
    CHECK(steps[3].what == static_cast<uint32_t>(StepKind::copy));
  }
}

}  // namespace

TEST_CASE("the kernel that runs every plan stamps each step") {
  check_exchange({.generic = true, .stamp_words = kWords});
}

TEST_CASE("so do the fast kernels, and launches of each rank") {
  check_exchange({.stamp_words = kWords});
  check_exchange({.apart = true, .stamp_words = kWords});
}

TEST_CASE("a short program is run by another kernel if it is to be stamped") {
  const TestProgram t = testing::one_shot(2, 2, PacketFormat::LL16);
  const std::vector<uint64_t> words =
      stamps_of(t.program, {.apart = true, .in_short = true, .stamp_words = kWords});
  REQUIRE(words.size() == 4 * kWords);
  for (uint32_t block = 0; block < 4; ++block) {
    CHECK_FALSE(steps_of(words.data() + block * kWords, kWords).empty());
  }
}

TEST_CASE("a pipeline's steps are stamped round after round") {
  for (const testing::OpPlan& plan : testing::op_plans()) {
    if (plan.name.find("pipeline") == std::string::npos) continue;
    const TestProgram t = plan.build(PacketFormat::none);
    const std::vector<uint64_t> words =
        stamps_of(t.program, {.generic = true, .stamp_words = 4096});
    uint32_t most = 0;
    for (size_t at = 0; at < words.size(); at += 4096) {
      std::map<uint32_t, uint32_t> times;
      for (const BlockStamp& s : steps_of(words.data() + at, 4096)) {
        most = std::max(most, ++times[s.source]);
      }
    }
    CHECK(most > 1);
  }
}

TEST_CASE("stamps that do not fit are counted, and written nowhere") {
  const TestProgram t = testing::exchange();
  constexpr uint32_t kFew = device::kStampHead + 2;
  const std::vector<uint64_t> words = stamps_of(t.program, {.generic = true, .stamp_words = kFew});
  REQUIRE(words.size() == 2 * kFew);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    CHECK(words[rank * kFew + device::kStampsDue] > 2);
    CHECK(words[rank * kFew + device::kStampsEnded] != 0);
  }
}

TEST_CASE("a launch that is not to be stamped is not") {
  const TestProgram t = testing::exchange();
  CHECK(stamps_of(t.program, {}).empty());
}

}  // namespace mscclc::cuda
