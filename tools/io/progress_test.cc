#include "tools/io/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "tools/io/files.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;

/// A terminal whose other end the test reads.
struct Terminal {
  Terminal() : user(posix_openpt(O_RDWR | O_NOCTTY)) {
    REQUIRE(user >= 0);
    REQUIRE(grantpt(user) == 0);
    REQUIRE(unlockpt(user) == 0);
    char name[128];
    REQUIRE(ptsname_r(user, name, sizeof name) == 0);
    program = open(name, O_RDWR | O_NOCTTY);
    REQUIRE(program >= 0);
    setenv("TERM", "xterm", 1);
  }
  ~Terminal() {
    close(program);
    close(user);
  }
  /// What has been written, once it holds `text`; or what has come in some minutes.
  std::string until(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + 300s;
    while (seen.find(text) == std::string::npos && std::chrono::steady_clock::now() < end) {
      pollfd ready{user, POLLIN, 0};
      if (poll(&ready, 1, 100) <= 0) continue;
      char some[512];
      const ssize_t n = read(user, some, sizeof some);
      if (n > 0) seen.append(some, static_cast<size_t>(n));
    }
    return std::exchange(seen, {});
  }
  int user = -1, program = -1;
  std::string seen;
};

}  // namespace

TEST_CASE("progress: what, how far, how long it may still take") {
  CHECK(progress_text("verify", "a.mscl", 1, 12, 700ms, 100) ==
        "verify: 1 of 12, 1 s so far: a.mscl");
  CHECK(progress_text("verify", "a.mscl", 1, 1, 30s, 100) == "verify: 30 s so far: a.mscl");
  CHECK(progress_text("verify", "b.mscl", 4, 12, 9s, 100) ==
        "verify: 4 of 12, 9 s so far, about 27 s left: b.mscl");
  CHECK(progress_text("library", "", 2, 200, 30s, 100) ==
        "library: 2 of 200, 30 s so far, about 100 min left");
  CHECK(progress_text("bench", "", 11, 1000, 500s, 100) ==
        "bench: 11 of 1000, 8 min so far, about 13.8 h left");
}

TEST_CASE("progress: names of files command no terminal, and fit into its line") {
  CHECK(progress_text("run", "\x1b[2J.mscl", 1, 2, 1s, 100) ==
        "run: 1 of 2, 1 s so far: \\x1b[2J.mscl");
  CHECK(progress_text("run", "äöü.mscl", 1, 2, 1s, 27) == "run: 1 of 2, 1 s so far: äö");
}

TEST_CASE("progress is shown on a terminal, and goes at the end") {
  Terminal terminal;
  {
    Progress progress("verify", 3, terminal.program, 1ms);
    progress.next("a.mscl");
    CHECK(terminal.until("1 of 3, ").find("\rverify: 1 of 3, ") != std::string::npos);
    progress.next("b.mscl");
    CHECK(terminal.until(": b.mscl\x1b[K").find("2 of 3, ") != std::string::npos);
    put("");  // what is printed hides it
    terminal.until("\r\x1b[K");
    terminal.until("2 of 3");  // and it comes again
  }
  CHECK(terminal.until("\r\x1b[K").ends_with("\r\x1b[K"));
}

TEST_CASE("progress within progress shows nothing") {
  Terminal terminal;
  Progress outer("library", 2, terminal.program, 1ms);
  outer.next("a");
  {
    Progress inner("run", 5, terminal.program, 1ms);
    inner.next("b");
    CHECK(terminal.until("library").find("run:") == std::string::npos);
  }
  CHECK(terminal.until("1 of 2").find("library: 1 of 2") != std::string::npos);
}

TEST_CASE("where there is no terminal, there is no progress") {
  int ends[2];
  REQUIRE(pipe2(ends, O_NONBLOCK) == 0);
  {
    Progress progress("verify", 3, ends[1], 0ms);
    progress.next("a.mscl");
  }
  char some[16];
  CHECK(read(ends[0], some, sizeof some) == -1);  // nothing was written
  close(ends[0]);
  close(ends[1]);
}

}  // namespace mscclc
