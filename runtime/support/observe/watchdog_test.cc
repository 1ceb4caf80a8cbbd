#include "runtime/support/observe/watchdog.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>

namespace mscclc {
namespace {

/// What a child of fork() does, and its exit code: it watches something itself.
int watch_in_child() {
  ::alarm(300);  // it would wait forever
  std::atomic<bool> looked = false;
  Diagnostics diagnostics;
  const auto watch = Watchdog::watch([&] { looked = true; }, diagnostics);
  while (watch != nullptr && !looked) std::this_thread::yield();
  return watch != nullptr ? 0 : 1;
}

TEST_CASE("a child that was forked while the watchdog looked has its own") {
  std::atomic<bool> looks = false, forked = false;
  Diagnostics diagnostics;
  const auto watch = Watchdog::watch(
      [&] {
        looks = true;
        while (!forked) std::this_thread::yield();
      },
      diagnostics);
  REQUIRE(watch != nullptr);
  while (!looks) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(watch_in_child());
  forked = true;
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("haste may be made in a look, and after the watch") {
  std::atomic<int> looks = 0;
  std::function<void()> hasten;
  std::atomic<bool> made = false;
  Diagnostics diagnostics;
  auto watch = Watchdog::watch(
      [&] {
        if (made) hasten();
        ++looks;
      },
      diagnostics);
  REQUIRE(watch != nullptr);
  hasten = watch->haste();
  made = true;
  while (looks < 100) {
    hasten();
    std::this_thread::yield();
  }
  watch.reset();
  hasten();
}

}  // namespace
}  // namespace mscclc
