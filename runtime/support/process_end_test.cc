// The end of a process shows, whatever its children hold.
#include "runtime/support/process_end.h"

#include <poll.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/support/deadline.h"
#include "tests/helpers/runtime/processes.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;

TEST_CASE("the end of a process is one descriptor for all that ask") {
  CHECK(end_of_process(::getpid()) == nullptr);
  CHECK(end_of_process(0) == nullptr);
  testing::Processes processes;
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  processes.start([&] {
    const pid_t own = ::getpid();
    if (::write(pipe[1], &own, sizeof own) != sizeof own) return 1;
    ::pause();
    return 0;
  });
  pid_t process = 0;
  REQUIRE(::read(pipe[0], &process, sizeof process) == sizeof process);
  ::close(pipe[0]);
  ::close(pipe[1]);
  auto end = end_of_process(process);
  REQUIRE(end != nullptr);
  CHECK(end_of_process(process) == end);
  pollfd polled{end->get(), POLLIN, 0};
  CHECK(::poll(&polled, 1, 0) == 0);
  processes.kill(0);
  CHECK(await(end->get(), POLLIN, std::chrono::steady_clock::now() + 60s));
  CHECK(processes.wait(0, 60s) == -SIGKILL);
  end.reset();
  CHECK(end_of_process(process) == nullptr);  // nothing of it is kept
}

}  // namespace
}  // namespace mscclc
