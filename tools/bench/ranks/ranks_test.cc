// The benchmark's ranks end together, and none is waited for without end.
#include "tools/bench/ranks/ranks.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <new>
#include <string>
#include <vector>

#include "tests/helpers/runtime/longer_times.h"

namespace mscclc::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct SharedWatch {
  Watch& watch = *new (shared_memory(sizeof(Watch))) Watch;
};

int stay() {
  for (;;) pause();
}

}  // namespace

TEST_CASE("bench: ranks meet, and their work is their exit code") {
  SharedWatch shared;
  const auto meet = [](std::unique_ptr<Bootstrap> bootstrap) {
    Diagnostics diagnostics;
    std::vector<std::vector<uint8_t>> all;
    const auto own = static_cast<uint8_t>(bootstrap->rank());
    const bool met = bootstrap->all_gather({&own, 1}, "meet", all, diagnostics);
    return met && all.size() == 3 && all[2] == std::vector<uint8_t>{2} ? 0 : 1;
  };
  CHECK(run_ranks(3, shared.watch, 0s, meet) == 0);
}

TEST_CASE("bench: a rank that fails ends the others") {
  SharedWatch shared;
  CHECK(run_ranks(3, shared.watch, 0s, [](std::unique_ptr<Bootstrap> bootstrap) {
          return bootstrap->rank() == 1 ? 7 : stay();
        }) == 7);
  CHECK(run_ranks(2, shared.watch, 0s, [](std::unique_ptr<Bootstrap> bootstrap) {
          if (bootstrap->rank() == 0) raise(SIGKILL);
          return stay();
        }) == 3);
}

TEST_CASE("bench: ranks in which nothing begins any more are ended, and it is said where") {
  const auto is_right = [](int factor) {
    SharedWatch shared;
    const auto begin = Clock::now();
    CHECK(run_ranks(2, shared.watch, factor * 4s, [&](std::unique_ptr<Bootstrap> bootstrap) {
            for (int i = 0; i < 10; ++i) {  // longer than the patience, but not at a time
              usleep(500'000 * factor);
              if (bootstrap->rank() == 0) shared.watch.begin("step " + std::to_string(i));
            }
            return stay();
          }) == 3);
    const auto took = Clock::now() - begin;
    return took > factor * 9s && shared.watch.what() == "step 9" && shared.watch.begun() == 10;
  };
  CHECK(testing::right_in_longer_times(is_right, {1, 5}));
}

TEST_CASE("bench: words that are too long are cut off") {
  Watch watch;
  watch.begin(std::string(1000, 'x'));
  CHECK(watch.what() == std::string(255, 'x'));
}

}  // namespace mscclc::bench
