// What a loop knows of the time for which its process was stopped.
#include "runtime/bootstrap/tcp/times.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a loop that ran on time was not stopped") {
  StopDetector stops(4s);
  SteadyTime now;
  for (int i = 0; i < 10; ++i) {
    CHECK(!stops.look(now += 1900ms));
    CHECK(!stops.just_stopped());
  }
}

// Its last word may have been a heartbeat's time before it was stopped, so it was taken for dead
// before it had itself been silent for so long.
TEST_CASE("a loop that did not run for half of the silence was stopped, and says so for a while") {
  StopDetector stops(4s);
  SteadyTime now;
  CHECK(!stops.look(now));
  CHECK(stops.look(now += 3500ms));
  CHECK(stops.just_stopped() == 3500ms);
  CHECK(!stops.look(now += 900ms));
  CHECK(stops.just_stopped() == 3500ms);
  CHECK(!stops.look(now += 100ms));
  CHECK(!stops.just_stopped());
}

}  // namespace
}  // namespace mscclc
