#include "executor/cost/virtual_time/shared_rate.h"

#include <catch2/catch.hpp>

namespace mscclc::cost {

TEST_CASE("a transfer alone has the whole rate") {
  SharedRate rate(2);
  rate.add(7, 100, 10);
  CHECK(rate.next_end() == Approx(60));
  CHECK(rate.pop(60) == 7);
  CHECK(rate.idle());
}

TEST_CASE("transfers share the rate, and those that are left go faster") {
  SharedRate rate(1);
  rate.add(0, 100, 0);
  rate.add(1, 50, 0);
  CHECK(rate.next_end() == Approx(100));  // 50 each
  CHECK(rate.pop(100) == 1);
  CHECK(rate.next_end() == Approx(150));  // 50 are left, alone
  CHECK(rate.pop(150) == 0);
}

TEST_CASE("the end of all that is under way") {
  SharedRate rate(2);
  CHECK(rate.last_end(5) == 5);
  rate.add(0, 100, 10);
  rate.add(1, 60, 20);
  CHECK(rate.last_end(30) == Approx(10 + 160 / 2));
  CHECK(rate.pop(rate.next_end()) == 1);
  CHECK(rate.last_end(80) == Approx(90));
  CHECK(rate.pop(rate.next_end()) == 0);
  CHECK(rate.last_end(100) == 100);
}

TEST_CASE("a transfer that comes later slows the first one down") {
  SharedRate rate(1);
  rate.add(0, 100, 0);
  rate.add(1, 100, 50);
  CHECK(rate.next_end() == Approx(150));
  CHECK(rate.pop(150) == 0);
  CHECK(rate.next_end() == Approx(200));
  CHECK(rate.pop(200) == 1);
}

}  // namespace mscclc::cost
