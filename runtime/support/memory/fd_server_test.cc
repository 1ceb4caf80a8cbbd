// Descriptors go only to other processes that know their tickets.
#include "runtime/support/memory/fd_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <thread>

#include "runtime/support/deadline.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/memory/fd_socket.h"
#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/runtime/processes.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using testing::Processes;
using Bytes = std::vector<uint8_t>;

constexpr MemoryRange kAll{0, 4096};
constexpr auto kLong = 300s;  // far beyond what is needed, also under load

/// A memory file that holds `text`.
Fd file_with(const std::string& text) {
  Fd file(::memfd_create("mscclc-test", MFD_CLOEXEC));
  REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  return file;
}

std::string text_of(const Fd& file) {
  char text[64];
  const ssize_t got = ::pread(file.get(), text, sizeof text, 0);
  return got < 0 ? "unreadable" : std::string(text, static_cast<size_t>(got));
}

/// Why fetching failed; "" if it did not.
std::string failure(const Bytes& ticket, const FetchWait& wait = {kLong}) {
  Diagnostics diagnostics;
  const Fd fd = fetch_fd(ticket, kAll, wait, diagnostics);
  CHECK(fd.valid() != diagnostics.has_errors());
  if (fd.valid()) return {};
  CHECK(diagnostics.all().front().code == "fd-fetch");
  return diagnostics.all().front().message;
}

struct Served {
  Diagnostics diagnostics;
  std::unique_ptr<FdServer> server = FdServer::start(diagnostics);
  Bytes offer(const std::string& text) {
    return server->offer(file_with(text).get(), kAll, diagnostics);
  }
};

TEST_CASE("only what is offered of a descriptor can be had") {
  Served served;
  const Fd file = file_with("shared");
  const Bytes ticket = served.server->offer(file.get(), {64, 100}, served.diagnostics);
  Diagnostics diagnostics;
  CHECK(fetch_fd(ticket, {64, 100}, {kLong}, diagnostics).valid());
  CHECK(fetch_fd(ticket, {100, 64}, {kLong}, diagnostics).valid());
  CHECK_FALSE(fetch_fd(ticket, {0, 4096}, {kLong}, diagnostics).valid());
  CHECK(
      diagnostics.all().front().message ==
      "cannot fetch a descriptor from a peer's process: its owner lets others map 100 bytes at 64 "
      "of it, the handle is for 4096 bytes at 0");
}

TEST_CASE("another process gets the descriptor") {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  Processes processes;
  processes.start([&] {  // before there is a thread
    Bytes ticket(33);
    if (::read(pipe[0], ticket.data(), ticket.size()) != 33) return 1;
    Diagnostics diagnostics;
    const Fd fd = fetch_fd(ticket, kAll, {kLong}, diagnostics);
    if (!fd.valid()) return 2;
    if ((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) == 0) return 3;
    return text_of(fd) == "shared" ? 0 : 4;
  });
  Served served;
  const Bytes ticket = served.offer("shared");
  REQUIRE(ticket.size() == 33);
  REQUIRE(::write(pipe[1], ticket.data(), ticket.size()) == 33);
  CHECK(processes.wait(0, kLong) == 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("each ticket has its own descriptor, which may be fetched often") {
  Served served;
  const Bytes a = served.offer("a"), b = served.offer("b");
  CHECK(a != b);
  for (int i = 0; i < 3; ++i) {
    CHECK(text_of(fetch_fd(a, kAll, {kLong}, served.diagnostics)) == "a");
    CHECK(text_of(fetch_fd(b, kAll, {kLong}, served.diagnostics)) == "b");
  }
  CHECK_FALSE(served.diagnostics.has_errors());
}

TEST_CASE("what is withdrawn, unknown, damaged or gone is not given") {
  Served served;
  const Bytes ticket = served.offer("a"), kept = served.offer("b");
  served.server->withdraw(ticket);
  const std::string head = "cannot fetch a descriptor from a peer's process: ";
  CHECK(failure(ticket) == head + "it does not offer this one (any more), or runs as another user");
  Bytes guess = kept;
  guess.back() ^= 1;
  CHECK(failure(guess) == head + "it does not offer this one (any more), or runs as another user");
  CHECK(failure(Bytes(kept.begin(), kept.end() - 1)) == head + "its ticket is damaged");
  CHECK(failure({}) == head + "its ticket is damaged");
  CHECK(failure(kept).empty());
  served.server.reset();
  CHECK(failure(kept) == head +
                             "no process serves it here: the process has ended, or runs on another "
                             "machine or in another network namespace (container)");
}

TEST_CASE("all of a process share a server, and none is left after the last of them") {
  Diagnostics diagnostics;
  const size_t before = testing::open_descriptors();
  auto one = FdServer::of_process(diagnostics);
  REQUIRE(one != nullptr);
  const size_t with_one = testing::open_descriptors();
  auto other = FdServer::of_process(diagnostics);
  CHECK(other == one);
  const auto file = std::make_shared<const Fd>(file_with("kept"));
  const Bytes ticket = other->offer(file, kAll, diagnostics);
  CHECK(testing::open_descriptors() == with_one + 1);  // the file's own
  one.reset();
  CHECK(text_of(fetch_fd(ticket, kAll, {kLong}, diagnostics)) == "kept");
  other.reset();
  CHECK(testing::open_descriptors() == before + 1);
  CHECK(failure(ticket) != "");
}

#ifndef MSCCLC_TSAN  // which lets no thread start in a child of a process with threads
TEST_CASE("a forked child has a server of its own") {
  Diagnostics diagnostics;
  const auto parents = FdServer::of_process(diagnostics);
  REQUIRE(parents != nullptr);
  Processes processes;
  processes.start([&] {
    Diagnostics problems;
    const auto own = FdServer::of_process(problems);
    return own != nullptr && own != parents ? 0 : 1;
  });
  CHECK(processes.wait(0, kLong) == 0);
}
#endif

TEST_CASE("a descriptor that is not open cannot be offered") {
  Served served;
  CHECK(served.server->offer(-1, kAll, served.diagnostics).empty());
  CHECK(served.diagnostics.all().front().code == "fd-offer");
}

TEST_CASE("a wait for a server ends when there is nothing left to wait for") {
  FdTicket ticket;
  fill_random(ticket.socket);
  const Fd listener = listen_for_fds(ticket);
  REQUIRE(listener.valid());
  int asked = 0;
  const auto over = [&] { return ++asked > 2; };
  const std::string ended =
      "cannot fetch a descriptor from a peer's process: the job has failed meanwhile";
  CHECK(failure(ticket.bytes(), {1h, over}) == ended);
  // The same where its backlog is full.
  std::vector<Fd> others;
  for (Fd other = connect_for_fds(ticket); other.valid(); other = connect_for_fds(ticket)) {
    others.push_back(std::move(other));
  }
  asked = 0;
  CHECK(failure(ticket.bytes(), {1h, over}) == ended);
}

TEST_CASE("a server that does not answer costs no more than the timeout") {
  FdTicket ticket;
  fill_random(ticket.socket);
  const Fd listener = listen_for_fds(ticket);
  REQUIRE(listener.valid());
  CHECK(failure(ticket.bytes(), {100ms}) ==
        "cannot fetch a descriptor from a peer's process: no answer within 100 ms");
}

TEST_CASE(
    "a client that was too slow for the server tries again; what is refused is refused at once") {
  FdTicket ticket;
  fill_random(ticket.socket);
  const Fd listener = listen_for_fds(ticket);
  REQUIRE(listener.valid());
  std::thread server([&] {
    const auto accept_one = [&] {
      (void)await(listener.get(), POLLIN, std::chrono::steady_clock::now() + kLong);
      return Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    };
    Fd first = accept_one();
    std::this_thread::sleep_for(kMayHaveBeenSlow + 50ms);  // a stopped client has taken so long
    first.reset();
    const Fd second = accept_one();
    FdSecret secret;
    (void)await(second.get(), POLLIN, std::chrono::steady_clock::now() + kLong);
    if (receive_secret(second, secret)) (void)send_fd(second, make_waker(), kAll);
  });
  Diagnostics diagnostics;
  CHECK(fetch_fd(ticket.bytes(), kAll, {kLong}, diagnostics).valid());
  CHECK(diagnostics.all().empty());
  server.join();
}

TEST_CASE("clients that say nothing, or too much, do not keep others waiting") {
  Served served;
  const Bytes ticket = served.offer("a");
  const auto address = FdTicket::read(ticket);
  std::vector<Fd> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connect_for_fds(*address));
  Fd chatty = connect_for_fds(*address);
  const Bytes noise(5000, 1);
  CHECK(::send(chatty.get(), noise.data(), noise.size(), MSG_NOSIGNAL) == 5000);
  CHECK(failure(ticket).empty());
}

TEST_CASE("many processes fetch at once") {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  constexpr int kProcesses = 8, kFetches = 50;
  Processes processes;
  for (int i = 0; i < kProcesses; ++i) {
    processes.start([&] {
      Bytes ticket(33);
      if (::read(pipe[0], ticket.data(), ticket.size()) != 33) return 1;
      for (int k = 0; k < kFetches; ++k) {
        Diagnostics diagnostics;
        if (text_of(fetch_fd(ticket, kAll, {kLong}, diagnostics)) != "shared") return 2;
      }
      return 0;
    });
  }
  Served served;
  const Bytes ticket = served.offer("shared");
  for (int i = 0; i < kProcesses; ++i) REQUIRE(::write(pipe[1], ticket.data(), 33) == 33);
  for (int i = 0; i < kProcesses; ++i) CHECK(processes.wait(i, kLong) == 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

/// Takes all descriptors that the process has left, except `free`.
class NoDescriptors {
 public:
  explicit NoDescriptors(size_t free) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{64, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (;;) {
      Fd fd(::dup(STDERR_FILENO));
      if (!fd.valid()) break;
      held_.push_back(std::move(fd));
    }
    held_.resize(held_.size() - free);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<Fd> held_;
};

TEST_CASE("a process without descriptors still serves what it has offered") {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  Processes processes;
  processes.start([&] {
    Bytes ticket(33);
    if (::read(pipe[0], ticket.data(), ticket.size()) != 33) return 1;
    for (int i = 0; i < 3; ++i) {
      Diagnostics diagnostics;
      if (text_of(fetch_fd(ticket, kAll, {kLong}, diagnostics)) != "shared") return 2;
    }
    return 0;
  });
  Served served;
  const Bytes ticket = served.offer("shared");
  Diagnostics diagnostics;
  Bytes refused;
  ssize_t written = 0;
  int status = 0;
  {
    // Checks come later: UBSan, which looks at Catch's objects, needs descriptors for that.
    const NoDescriptors none(0);
    refused = served.server->offer(STDERR_FILENO, kAll, diagnostics);
    written = ::write(pipe[1], ticket.data(), ticket.size());
    status = processes.wait(0, kLong);
  }
  CHECK(refused.empty());
  CHECK(diagnostics.all().front().code == "no-descriptors");
  CHECK(diagnostics.all().front().message ==
        "cannot offer descriptor 2: Too many open files (24); the limit is 'ulimit -n'");
  REQUIRE(written == 33);
  CHECK(status == 0);
  CHECK(failure(ticket).empty());
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("a process without room for a descriptor gets an error that says so") {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  Processes processes;
  for (const size_t free : {0u, 1u, 2u}) {  // the second is for what comes
    processes.start([&, free] {
      Bytes ticket(33);
      if (::read(pipe[0], ticket.data(), ticket.size()) != 33) return 1;
      Diagnostics diagnostics;
      bool fetched = false;
      {
        const NoDescriptors none(free);
        fetched = fetch_fd(ticket, kAll, {kLong}, diagnostics).valid();
      }
      if (fetched || free == 2) return fetched && free == 2 ? 0 : 2;
      const Diagnostic& error = diagnostics.all().front();
      return error.code == "no-descriptors" &&
                     error.message ==
                         "cannot fetch a descriptor from a peer's process, as this process has no "
                         "file descriptors left ('ulimit -n' raises the limit)"
                 ? 0
                 : 3;
    });
  }
  Served served;
  const Bytes ticket = served.offer("shared");
  for (int i = 0; i < 3; ++i) REQUIRE(::write(pipe[1], ticket.data(), ticket.size()) == 33);
  for (int i = 0; i < 3; ++i) CHECK(processes.wait(i, kLong) == 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("a thousand servers, offers and fetches leave no descriptor open") {
  const size_t before = testing::open_descriptors();
  for (int i = 0; i < 1000; ++i) {
    Served served;
    const Bytes ticket = served.offer("x");
    REQUIRE(failure(ticket).empty());
    if (i % 2 == 0) served.server->withdraw(ticket);
  }
  CHECK(testing::open_descriptors() == before);
}

}  // namespace
}  // namespace mscclc
