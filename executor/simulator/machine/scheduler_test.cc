#include "executor/simulator/machine/scheduler.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace mscclc {
namespace {

struct Shared {
  Scheduler* scheduler = nullptr;
  uint64_t count = 0;
  uint64_t served = 0;
  std::string trace = {};
};
struct Worker {
  Shared* shared;
  char name;
  int steps;
};

void step(void* argument) {
  auto* w = static_cast<Worker*>(argument);
  for (int i = 0; i < w->steps; ++i) {
    w->shared->trace += w->name;
    w->shared->scheduler->yield();
  }
}

std::string trace_of(uint64_t seed) {
  FiberPool fibers;
  Scheduler scheduler(fibers, seed);
  Shared shared{&scheduler};
  Worker workers[] = {{&shared, 'a', 3}, {&shared, 'b', 2}, {&shared, 'c', 4}};
  for (Worker& w : workers) REQUIRE(scheduler.spawn(step, &w, false));
  CHECK(scheduler.run());
  return shared.trace;
}

TEST_CASE("seed 0 runs fibers in turn") { CHECK(trace_of(0) == "abcabcacc"); }

TEST_CASE("a seed is a schedule, and seeds differ") {
  std::set<std::string> traces;
  for (uint64_t seed = 1; seed < 40; ++seed) {
    CHECK(trace_of(seed) == trace_of(seed));
    traces.insert(trace_of(seed));
  }
  CHECK(traces.size() > 20);
}

void wait_for_three(void* argument) {
  auto* shared = static_cast<Shared*>(argument);
  shared->scheduler->wait({Wait::Test::above64, &shared->count, 2});
  shared->trace += 'w';
}

void add_one(void* argument) {
  auto* shared = static_cast<Shared*>(argument);
  ++shared->count;
}

TEST_CASE("a fiber is parked until its condition holds") {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FiberPool fibers;
    Scheduler scheduler(fibers, seed);
    Shared shared{&scheduler};
    scheduler.spawn(wait_for_three, &shared, false);
    for (int i = 0; i < 3; ++i) scheduler.spawn(add_one, &shared, false);
    CHECK(scheduler.run());
    CHECK(shared.trace == "w");
  }
}

TEST_CASE("a run in which no task can move hangs") {
  FiberPool fibers;
  Scheduler scheduler(fibers, 0);
  Shared shared{&scheduler};
  scheduler.spawn(wait_for_three, &shared, false);
  scheduler.spawn(add_one, &shared, false);
  CHECK_FALSE(scheduler.run());
}

void serve(void* argument) {
  auto* shared = static_cast<Shared*>(argument);
  for (;;) {
    shared->scheduler->wait({Wait::Test::above64, &shared->count, shared->served});
    ++shared->served;
  }
}

TEST_CASE("services never end, but finish their work") {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FiberPool fibers;
    Scheduler scheduler(fibers, seed);
    Shared shared{&scheduler};
    scheduler.spawn(serve, &shared, true);
    for (int i = 0; i < 5; ++i) scheduler.spawn(add_one, &shared, false);
    CHECK(scheduler.run());
    CHECK(shared.served == 5);
  }
}

TEST_CASE("every test of a condition") {
  const uint64_t wide = uint64_t{5} << 32 | 7;
  using Test = Wait::Test;
  CHECK(Wait{}.over());
  CHECK(Wait{Test::above64, &wide, wide - 1}.over());
  CHECK_FALSE(Wait{Test::above64, &wide, wide}.over());
  CHECK(Wait{Test::equal64, &wide, wide}.over());
  CHECK_FALSE(Wait{Test::differs64, &wide, wide}.over());
  CHECK(Wait{Test::equal32, &wide, 7}.over());
  CHECK(Wait{Test::differs32, &wide, 8}.over());
  CHECK_FALSE(Wait{Test::differs32, &wide, 7}.over());
}

TEST_CASE("a thousand fibers, used again") {
  FiberPool fibers;
  for (int round = 0; round < 3; ++round) {
    Scheduler scheduler(fibers, 0);
    Shared shared{&scheduler};
    for (int i = 0; i < 1000; ++i) REQUIRE(scheduler.spawn(add_one, &shared, false));
    CHECK(scheduler.run());
    CHECK(shared.count == 1000);
  }
}

}  // namespace
}  // namespace mscclc
