// What /proc says of this process and its children.
#include "runtime/support/process/proc.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/helpers/runtime/processes.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;

TEST_CASE("facts of a process") {
  const auto own = facts_of(::getpid());
  REQUIRE(own);
  CHECK(own->parent == ::getppid());
  CHECK(own->began <= ticks_now());
  CHECK(!program_of(::getpid()).empty());
  CHECK(!entries_of(::getpid(), "cmdline").empty());
  const auto all = own_processes();
  CHECK(std::count(all.begin(), all.end(), ::getpid()) == 1);
  testing::Processes processes;
  const testing::Signal end;
  processes.start([&] {
    const auto facts = facts_of(::getpid());
    const bool younger = facts && facts->began >= own->began && facts->parent == ::getppid();
    return younger && end.take() ? 0 : 1;
  });
  REQUIRE(end.give());
  CHECK(processes.wait(0, 300s) == 0);
  CHECK_FALSE(facts_of(-1));
}

}  // namespace
}  // namespace mscclc
