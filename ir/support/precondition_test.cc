#include "ir/support/precondition.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>

using namespace mscclc;

namespace {

/// Is a process ended by a precondition that holds, or does not?
bool ends(bool holds) {
  const pid_t child = fork();
  if (child == 0) {
    std::fclose(stderr);
    std::signal(SIGABRT, SIG_DFL);  // Catch's handler would report a failed test case
    precondition(holds);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace

TEST_CASE("a precondition that does not hold ends the program where they are asserted") {
  CHECK_FALSE(ends(true));
  CHECK(ends(false) == kAssertsPreconditions);
}
