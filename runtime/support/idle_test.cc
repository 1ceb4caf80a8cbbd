#include "runtime/support/idle.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <vector>

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock::duration;

/// A clock that only rests move.
struct FakeRests {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point now() { return time; }
  static void yield() {
    ++yields;
    time += yield_takes;
  }
  static void sleep(Time asked) {
    sleeps.push_back(asked);
    time += asked;
  }
  static void start() {
    time = Clock::time_point{1h};
    yield_takes = 1us;
    forget();
  }
  static void forget() {
    yields = 0;
    sleeps.clear();
  }

  static inline Clock::time_point time;
  static inline Time yield_takes;
  static inline int yields;
  static inline std::vector<Time> sleeps;
};
using TestedIdle = IdleOn<FakeRests>;

void rest(TestedIdle& idle, int times) {
  for (int i = 0; i < times; ++i) idle.rest();
}

TEST_CASE(
    "a thread that polls first goes on at once, then lets others run, then sleeps ever longer") {
  FakeRests::start();
  TestedIdle idle;
  rest(idle, 64);
  CHECK(FakeRests::yields == 0);
  rest(idle, 1983);
  CHECK_FALSE(idle.is_tired());
  rest(idle, 1);
  CHECK(FakeRests::yields == 1984);
  CHECK(FakeRests::sleeps.empty());
  CHECK(idle.is_tired());
  rest(idle, 1000);
  CHECK(FakeRests::yields == 1984);
  REQUIRE(FakeRests::sleeps.size() == 1000);
  CHECK(FakeRests::sleeps.front() == Time(50us));
  CHECK(FakeRests::sleeps.back() == Time(1ms));
  idle.reset();
  FakeRests::forget();
  rest(idle, 65);
  CHECK(FakeRests::yields == 1);
  CHECK(FakeRests::sleeps.empty());
}

TEST_CASE("a thread that is to stay awake sleeps later") {
  FakeRests::start();
  TestedIdle idle(3ms);
  rest(idle, 64 + 3000);
  CHECK(FakeRests::yields == 3000);
  CHECK(FakeRests::sleeps.empty());
  rest(idle, 1);
  CHECK(FakeRests::sleeps.size() == 1);
}

TEST_CASE("a thread that has waited long for its processor sleeps at once, for a while") {
  FakeRests::start();
  TestedIdle idle(1s);  // has no say in it
  FakeRests::yield_takes = 3ms;
  rest(idle, 64 + 10);
  CHECK(FakeRests::yields == 1);
  CHECK(FakeRests::sleeps.size() == 9);
  CHECK(idle.is_tired());
  // Also in the next wait, but not before it has looked some times.
  idle.reset();
  FakeRests::forget();
  CHECK_FALSE(idle.is_tired());
  rest(idle, 64);
  CHECK(FakeRests::sleeps.empty());
  rest(idle, 1);
  CHECK(FakeRests::yields == 0);
  CHECK(FakeRests::sleeps.size() == 1);
  // Until that has been 16 times as long.
  FakeRests::time += 48ms;
  FakeRests::yield_takes = 1us;
  FakeRests::forget();
  rest(idle, 10);
  CHECK(FakeRests::yields == 10);
  CHECK(FakeRests::sleeps.empty());
}

}  // namespace
}  // namespace mscclc
