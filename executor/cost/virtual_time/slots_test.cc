// Numbers of things that come and go.
#include "executor/cost/virtual_time/slots.h"

#include <catch2/catch.hpp>
#include <string>

namespace mscclc::cost {

TEST_CASE("a number is one thing's until that is taken") {
  Slots<std::string> slots;
  const uint32_t a = slots.put("a"), b = slots.put("b");
  CHECK(a != b);
  const std::string& stays = slots[b];
  CHECK(slots.take(a) == "a");
  const uint32_t c = slots.put("c");
  CHECK(c == a);
  for (int i = 0; i < 1000; ++i) slots.put("more");
  CHECK(slots[c] == "c");
  CHECK(&stays == &slots[b]);
  CHECK(stays == "b");
}

}  // namespace mscclc::cost
