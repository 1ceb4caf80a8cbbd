#include "runtime/support/process/per_process.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

#include "tests/helpers/runtime/processes.h"

namespace mscclc {
namespace {

struct Counted {
  std::mutex mutex;
  int count = 0;
};

TEST_CASE("all threads of a process have the same") {
  static PerProcess<Counted> counted;
  const auto add = [] {
    for (int i = 0; i < 1000; ++i) {
      const std::lock_guard lock(counted.get().mutex);
      ++counted.get().count;
    }
  };
  std::thread other(add);
  add();
  other.join();
  CHECK(counted.get().count == 2000);
}

/// What a child that was forked while the mutex was held finds, as its exit code.
int use_in_child(PerProcess<Counted>& counted) {
  ::alarm(300);  // it would wait forever
  const std::lock_guard lock(counted.get().mutex);
  return counted.get().count == 0 ? 0 : 1;
}

TEST_CASE("a child of fork() has one of its own, whichever thread held the parent's") {
  static PerProcess<Counted> counted;
  testing::Processes processes;
  {
    const std::lock_guard lock(counted.get().mutex);
    counted.get().count = 1;
    processes.start([] { return use_in_child(counted); });
  }
  CHECK(processes.wait(0, std::chrono::minutes(5)) == 0);
  CHECK(counted.get().count == 1);
}

}  // namespace
}  // namespace mscclc
