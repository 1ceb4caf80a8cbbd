// Events come by time, those of one time in the order in which they were announced.
#include "executor/cost/virtual_time/events.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <tuple>

namespace mscclc::cost {

TEST_CASE("events come in the order of their times, and of their numbers") {
  Events events;
  std::mt19937 random(5);
  std::vector<std::tuple<double, uint64_t, uint32_t>> waiting;
  const auto add = [&] {
    const double at = events.now() + random() % 8;
    const auto what = static_cast<uint32_t>(random());
    const uint64_t order = events.announce();
    waiting.emplace_back(at, order, what);
    events.push_announced(at, order, EventKind::go_on, what);
  };
  for (int i = 0; i < 5000; ++i) {
    if (waiting.empty() || random() % 100 < 55) {
      add();
      continue;
    }
    const auto first = std::ranges::min_element(waiting);
    REQUIRE(events.next().what == std::get<2>(*first));
    CHECK(events.now() == std::get<0>(*first));
    waiting.erase(first);
  }
  CHECK(events.empty() == waiting.empty());
}

TEST_CASE("an event that was announced comes before those that were pushed since") {
  Events events;
  const uint64_t announced = events.announce();
  events.push(2, EventKind::rate, 20);
  events.push(1, EventKind::rate, 10, 3);
  events.push_announced(2, announced, EventKind::served, 30);
  CHECK(events.count() == 3);
  const Event first = events.next(), second = events.next();
  CHECK((first.what == 10 && first.version == 3 && first.kind() == EventKind::rate));
  CHECK((second.what == 30 && second.kind() == EventKind::served));
  CHECK(events.next().what == 20);
  CHECK(events.empty());
}

}  // namespace mscclc::cost
