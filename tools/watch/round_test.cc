#include "tools/watch/round.h"

#include <catch2/catch.hpp>

#include "tests/helpers/files/made_up_folder.h"

using namespace mscclc;

namespace {

Round round_of(const std::string& program, std::vector<std::string> defines = {},
               uint64_t bytes = 4096) {
  const testing::MadeUpFolder folder;
  folder.write("lib.mscl", "let n = 1\n");
  InputOptions options;
  options.file = folder.write("a.mscl", program);
  options.defines = std::move(defines);
  FiberPool stacks;
  Round round = run_round(options, bytes, stacks);
  const Round again = run_round(options, bytes, stacks);
  CHECK(again.right == round.right);
  return round;
}

const std::string kCopy =
    "import \"lib.mscl\"\nparam R = 1\nrequire R == n, \"one rank\"\n"
    "collective allgather(ranks: R)\nrank 0 { copy output[0] <- input }\n";

}  // namespace

TEST_CASE("round: a right program is proved and run") {
  const Round round = round_of(kCopy);
  CHECK(round.right);
  CHECK(round.verdict.starts_with("proved, right on 1 rank; "));
  REQUIRE(round.files.size() == 2);
  CHECK(round.files[0].text == kCopy);
  CHECK(round.files[1].text == "let n = 1\n");
  CHECK(round.files[1].path.ends_with("lib.mscl"));
}

TEST_CASE("round: what is wrong is refused") {
  CHECK(round_of("x").verdict.starts_with("refused; "));
  const Round race = round_of("collective allgather(ranks: 2)\nrank r in 0..2 { sync }\n");
  CHECK_FALSE(race.right);
  CHECK(race.verdict.starts_with("refused; "));
  CHECK(round_of(kCopy, {"R=2"}).verdict.starts_with("refused; "));
  CHECK(round_of(kCopy, {"Q=2"}).verdict.starts_with("not read; "));
}

TEST_CASE("round: nothing is said of the run of what is refused") {
  // It hangs, which the run finds out, too.
  const std::string hangs =
      "collective barrier(ranks: 2)\nrank r in 0..2 {\n  channel ch = memory(1 - r)\n  tb 0 { wait "
      "ch }\n}\n";
  const Round round = round_of(hangs);
  CHECK_FALSE(round.right);
  CHECK(round.verdict.starts_with("refused; "));
}

TEST_CASE("round: a larger run follows the proof") {
  const Round round = round_of(kCopy, {}, uint64_t{48} << 20);
  CHECK(round.right);
  CHECK(round.verdict.starts_with("proved, right on 1 rank; "));
}

TEST_CASE("round: a run that takes too much memory is left out") {
  const Round round = round_of(kCopy, {}, uint64_t{1} << 32);
  CHECK(round.right);
  CHECK(round.verdict.starts_with("proved; not run"));
}
