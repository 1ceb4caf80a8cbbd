#include "runtime/support/observe/one_thread.h"

#include <catch2/catch.hpp>
#include <thread>

#include "tests/helpers/runtime/processes.h"

namespace mscclc {
namespace {

/// "" if this thread may be inside.
std::string enter(OneThread& place) {
  Diagnostics diagnostics;
  const OneThread::Visit visit(place, diagnostics);
  return visit ? "" : diagnostics.all().at(0).code;
}

// First: the process has no other threads yet.
TEST_CASE("a child of fork() may not be where its parent may") {
  OneThread place;
  testing::Processes processes;
  processes.start([&] {
    OneThread own;
    return enter(place) == "after-fork" && enter(own).empty() ? 0 : 1;
  });
  CHECK(processes.wait(0, std::chrono::minutes(5)) == 0);
  CHECK(enter(place) == "");
}

TEST_CASE("one thread may be inside, and enter again") {
  OneThread place;
  Diagnostics diagnostics;
  std::string others[2];
  {
    const OneThread::Visit visit(place, diagnostics);
    CHECK(enter(place) == "");
    std::thread([&] { others[0] = enter(place); }).join();
    CHECK(static_cast<bool>(visit));
  }
  std::thread([&] { others[1] = enter(place); }).join();
  CHECK(others[0] == "two-threads");
  CHECK(others[1] == "");
}

}  // namespace
}  // namespace mscclc
