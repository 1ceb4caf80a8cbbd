// Where a hub listens, what it needs for that, and what it says of it.
#include <fmt/format.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/support/address/sockets.h"
#include "tests/helpers/runtime/log_file.h"
#include "tests/helpers/runtime/processes.h"
#include "tests/helpers/runtime/raw_rank.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using testing::RawRank;

TEST_CASE("a hub needs an address that is free") {
  Diagnostics diagnostics;
  const auto other = Hub::start({.addresses = {Address::loopback(0)}, .timeout = 1s}, diagnostics);
  REQUIRE(other);
  const Address taken = other->address();
  CHECK_FALSE(Hub::start({.addresses = {taken}, .timeout = 1s}, diagnostics));
  CHECK(
      diagnostics.all().front().message ==
      fmt::format("the bootstrap cannot listen at {}: Address already in use (98)", taken.text()));
  // It takes the next one that is free.
  const auto hub =
      Hub::start({.addresses = {taken, Address::loopback(0)}, .timeout = 1s}, diagnostics);
  REQUIRE(hub);
  CHECK(hub->address().port() != taken.port());
  // And says so: ranks look there first, and another process listens.
  CHECK(diagnostics.all().back().code == "port-taken");
  CHECK(diagnostics.all().back().message ==
        fmt::format("another process listens where this job's ranks look for it first ({}: Address "
                    "already in use (98)); the bootstrap listens at {}",
                    taken.text(), hub->address().text()));
}

TEST_CASE("a hub at all addresses says so") {
  const testing::LogFile log(
      Environment::Values{{"MSCCLC_DEBUG", "INFO"}, {"MSCCLC_DEBUG_SUBSYS", "BOOTSTRAP"}});
  const uint16_t port = testing::spare_id().address.port();
  Diagnostics diagnostics;
  REQUIRE(Hub::start({.ports = {port}, .timeout = 1s}, diagnostics));
  CHECK(log.lines(fmt::format(" BOOTSTRAP ranks meet at port {} of all addresses", port)) == 1);
}

TEST_CASE("a hub needs a descriptor for each rank") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low = before;
  low.rlim_cur = 100;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  Diagnostics diagnostics;
  const HubOptions options{.addresses = {Address::loopback(0)}, .size = 37, .timeout = 1s};
  const auto hub = Hub::start(options, diagnostics);
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK_FALSE(hub);
  REQUIRE(diagnostics.has_errors());
  CHECK(diagnostics.all().front().message ==
        "the bootstrap of 37 ranks needs 101 file descriptors in the process that runs its hub, "
        "which may have 100");
  CHECK(diagnostics.all().front().notes.front().text == "'ulimit -n 101' raises the limit");
  CHECK(Hub::start(options, diagnostics));
  low.rlim_cur = 63;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  Diagnostics unsized;
  const auto none = Hub::start({.addresses = {Address::loopback(0)}, .timeout = 1s}, unsized);
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK_FALSE(none);
  REQUIRE(unsized.has_errors());
  CHECK(unsized.all().front().message ==
        "the bootstrap needs 64 file descriptors in the process that runs its hub, which may have "
        "63");
}

TEST_CASE(
    "a hub refuses where another process of this user listens at a socket of the job's name") {
  for (const uint16_t number : {1, 2, 16}) {
    const UniqueId id = testing::spare_id();
    const Address other = Address::local(wire::local_name(id.secret), number);
    Fd socket = listen_on(other);
    REQUIRE(socket.valid());
    const HubOptions options{
        .local = true, .addresses = {id.address}, .secret = id.secret, .size = 1, .timeout = 300s};
    Diagnostics diagnostics;
    CHECK_FALSE(Hub::start(options, diagnostics));
    REQUIRE(diagnostics.has_errors());
    CHECK(diagnostics.all().back().code == "two-jobs");
    CHECK(diagnostics.all().back().message ==
          "another process of this user already runs the hub of such a job, at the unix socket " +
              other.text() + ": two jobs have the same name");
    // What is bound and does not listen belongs to a child of a job that is over.
    ::shutdown(socket.get(), SHUT_RDWR);
    Diagnostics ignored;
    CHECK(Hub::start(options, ignored));
  }
}

TEST_CASE("another user has all unix sockets of a job that has a port, too") {
  if (::geteuid() != 0) {
    WARN("only root can be another user: not tried");
    return;
  }
  const UniqueId id = testing::spare_id();
  const testing::Signal ready;
  testing::Processes stranger;
  stranger.start([&] {
    if (::setresuid(65534, 65534, 65534) != 0) return 1;
    std::vector<Fd> others;
    for (uint16_t number = 1; number <= kLocalNames; ++number) {
      others.push_back(listen_on(Address::local(wire::local_name(id.secret), number)));
      if (!others.back().valid()) return 1;
    }
    if (!ready.give()) return 1;
    ::pause();
    return 0;
  });
  REQUIRE(ready.take());
  HubOptions options{
      .local = true, .addresses = {id.address}, .secret = id.secret, .size = 1, .timeout = 300s};
  Diagnostics diagnostics;
  const auto hub = Hub::start(options, diagnostics);
  REQUIRE(hub);
  REQUIRE(diagnostics.all().size() == 1);
  const Diagnostic& warning = diagnostics.all().front();
  CHECK(warning.code == "port-taken");
  CHECK_THAT(warning.message,
             Catch::StartsWith("another process has all unix sockets of this job (@mscclc-hub-"));
  CHECK_THAT(warning.message,
             Catch::EndsWith("-16: Address already in use (98)); its ranks meet over TCP only"));
  RawRank rank(id);
  CHECK(rank.come(0, 1));
  options.addresses.clear();
  CHECK_FALSE(Hub::start(options, diagnostics));
}

}  // namespace
}  // namespace mscclc
