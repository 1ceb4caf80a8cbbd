#include "tests/long_run/long_run.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "tests/helpers/runtime/longer_times.h"

namespace mscclc {
namespace {

TEST_CASE("every piece is done once, whatever the number of processes") {
  for (const uint32_t jobs : {1u, 3u}) {
    const LongRunResult result = run_pieces({.jobs = jobs}, 100, {"pieces_seen", "sum"}, [] {
      return [](uint64_t piece, Counts counts) {
        ++counts[0];
        counts[1] += piece;
      };
    });
    CHECK(result.counts == std::vector<uint64_t>{100, 4950});
    CHECK(result.next == 100);
    CHECK(result.broken.empty());
  }
}

TEST_CASE("a run that is out of time says where to go on, and the rest adds up") {
  const auto work = [] {
    return [](uint64_t piece, Counts counts) {
      usleep(50'000);
      counts[0] += piece;
    };
  };
  LongRunResult one;
  uint64_t pieces = 0;
  const auto begins_some = [&](int times) {
    pieces = 60 * static_cast<uint64_t>(times);
    one = run_pieces({.jobs = 2, .seconds = static_cast<uint32_t>(times)}, pieces, {"sum"}, work);
    return one.next > 2;
  };
  REQUIRE(testing::right_in_longer_times(begins_some));
  REQUIRE(one.next < pieces);
  const std::string text = summary(one, pieces, {"sum"});
  CHECK(text.find("go on with --first " + std::to_string(one.next)) != std::string::npos);
  const std::string file = std::string(std::getenv("TEST_TMPDIR")) + "/first_run";
  std::ofstream(file) << "some output\n" << text;
  const LongRun rest{.jobs = 4, .first = one.next, .earlier = {file}};
  const LongRunResult two = run_pieces(rest, pieces, {"sum"}, work);
  CHECK(two.next == pieces);
  CHECK(two.done == pieces);
  CHECK(two.counts[0] == (pieces - 1) * pieces / 2);
}

TEST_CASE("of a run that was ended from outside counts what it said last") {
  const std::string file = std::string(std::getenv("TEST_TMPDIR")) + "/ended_run";
  std::ofstream(file) << "so far: sum=3 pieces=2 broken=0 seconds=30\n"
                      << "so far: sum=7 pieces=5 broken=0 seconds=60\n";
  const LongRun none{.first = 6, .earlier = {file}};
  const LongRunResult result = run_pieces(none, 6, {"sum"}, [] { return [](uint64_t, Counts) {}; });
  CHECK(result.counts[0] == 7);
  CHECK(result.done == 5);
}

TEST_CASE("a process that dies is reported with its piece, and leaves its counts") {
  const LongRun options{.jobs = 2};
  const LongRunResult result = run_pieces(options, 10, {"done"}, [] {
    return [](uint64_t piece, Counts counts) {
      ++counts[0];
      if (piece == 4) _exit(9);
    };
  });
  CHECK(result.counts[0] == 10);
  CHECK(result.broken == std::vector<uint64_t>{4});
  const std::string text = summary(result, 10, {"done"});
  CHECK(text.find("counts: done=10 pieces=10 broken=1") == 0);
  CHECK(!result.whole());
  CHECK(text.find("died at piece 4\n") != std::string::npos);
}

}  // namespace
}  // namespace mscclc
