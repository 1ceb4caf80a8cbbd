// A rank's own calls against what others have noted, whichever comes first.
#include "runtime/core/calls/far_calls.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

CallRecord record(uint64_t number, uint64_t bytes) { return {.call = number, .bytes = bytes}; }

/// The next call of so many bytes. `changed`: FarCalls::next().
std::optional<FarCalls::Difference> call(FarCalls& calls, uint64_t bytes, bool* changed = nullptr) {
  CallRecord made = record(0, bytes);
  bool ignored = false;
  return calls.next(made, changed == nullptr ? ignored : *changed);
}

TEST_CASE("far calls: what is noted before and after this rank comes to it") {
  FarCalls calls;
  bool changed = false;
  CHECK(!call(calls, 8, &changed));
  CHECK(changed);
  CHECK(!call(calls, 8, &changed));
  CHECK(!changed);
  CHECK(!calls.noted(3, record(1, 8)));
  CHECK(!calls.noted(3, record(2, 8)));
  const auto late = calls.noted(3, record(2, 9));
  REQUIRE(late);
  CHECK(late->rank == 3);
  CHECK(late->own.bytes == 8);
  CHECK(late->other.bytes == 9);
  CHECK(!calls.noted(5, record(4, 16)));
  CHECK(!calls.noted(6, record(5, 8)));
  CHECK(!call(calls, 8));
  const auto early = call(calls, 8);
  REQUIRE(early);
  CHECK(early->rank == 5);
  CHECK(early->own.call == 4);
  CHECK(!call(calls, 8));
}

TEST_CASE("far calls: a rank that waits to load a plan, until this one loads it, too") {
  FarCalls calls;
  CHECK(!call(calls, 8));
  CallRecord load{.call = 2, .executable = 7};
  load.is_load = 1;
  SECTION("which this rank does not") {
    CHECK(!calls.noted(1, load));
    CHECK(call(calls, 8));
  }
  SECTION("or has not") {
    CHECK(!call(calls, 8));
    CHECK(calls.noted(1, load));
  }
  SECTION("which it does before it knows") {
    calls.loads(7);
    CHECK(!call(calls, 8));
    CHECK(!calls.noted(1, load));
  }
  SECTION("which it does then") {
    CHECK(!calls.noted(1, load));
    calls.loads(7);
    CHECK(!call(calls, 8));
  }
}

TEST_CASE("far calls: a note is compared with the call of its number, not with the last") {
  FarCalls calls;
  for (uint64_t i = 0; i < 10; ++i) CHECK(!call(calls, i / 3));
  for (uint64_t i = 0; i < 10; ++i) {
    CHECK(!calls.noted(1, record(i + 1, i / 3)));
    CHECK(calls.noted(1, record(i + 1, i / 3 + 1)));
  }
}

}  // namespace
}  // namespace mscclc
