// Where the system gives no thread, there is an error, at each place that starts one; and the
// caller's signals are what they were.
#include <catch2/catch.hpp>
#include <csignal>

#include "runtime/api/host_device.h"
#include "runtime/api/job.h"
#include "runtime/core/proxy/proxy.h"
#include "tests/helpers/runtime/no_threads.h"

namespace mscclc {
namespace {

using std::chrono::milliseconds;
using testing::NoThreads;

/// A mask that no default has, for as long as this lives.
class SomeMask {
 public:
  SomeMask() {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &mask, &before_);
  }
  ~SomeMask() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  static bool unchanged() {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    bool same = true;
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD}) {
      same &= sigismember(&now, signal) == (signal == SIGUSR2 ? 1 : 0);
    }
    return same;
  }

 private:
  sigset_t before_;
};

/// One error, that no thread could be had for `what`.
void check_reported(const Diagnostics& diagnostics, const std::string& what) {
  CHECK(SomeMask::unchanged());
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].code == "no-thread");
  CHECK(diagnostics.all()[0].message == "the system gives no thread for " + what);
}

TEST_CASE("no thread: the server of descriptors") {
  const SomeMask mask;
  const NoThreads none(0);
  Diagnostics diagnostics;
  CHECK(make_host_device(diagnostics) == nullptr);
  check_reported(diagnostics, "the server of descriptors");
}

TEST_CASE("no thread: a stream of the host") {
  const SomeMask mask;
  Diagnostics diagnostics;
  const auto device = make_host_device(diagnostics);
  REQUIRE(device != nullptr);
  const NoThreads none(0);
  CHECK(device->create_stream(diagnostics) == nullptr);
  check_reported(diagnostics, "a stream of the host");
}

TEST_CASE("no thread: a proxy") {
  const SomeMask mask;
  Diagnostics diagnostics;
  const std::shared_ptr<Device> device = make_host_device(diagnostics);
  REQUIRE(device != nullptr);
  uint64_t claimed = 0, seen = 0, flushed = 0;
  const Proxy::Counts counts{&claimed, &seen, &flushed};
  const NoThreads none(0);
  Proxy::Ports ports;
  ports.channels.push_back({.used = true});
  CHECK(Proxy::start(device, std::move(ports), counts, {}, diagnostics) == nullptr);
  check_reported(diagnostics, "the proxy of port channels");
}

TEST_CASE("no thread: the bootstrap's hub") {
  const SomeMask mask;
  const NoThreads none(0);
  Diagnostics diagnostics;
  CHECK_FALSE(host_job({.size = 1, .one_machine = true, .timeout = milliseconds(1000)}, diagnostics)
                  .has_value());
  check_reported(diagnostics, "the bootstrap's hub");
}

TEST_CASE("no thread: a rank of the bootstrap reports it to the others") {
  Diagnostics own, other;
  auto job = host_job({.size = 2, .one_machine = true, .timeout = milliseconds(300'000)}, own);
  REQUIRE(job.has_value());
  {
    const NoThreads none(0);
    CHECK(join_job(job->id, 1, 2, milliseconds(300'000), nullptr, own) == nullptr);
  }
  CHECK(join_job(job->id, 0, 2, milliseconds(300'000), nullptr, other) == nullptr);
  REQUIRE(other.all().size() == 1);
  CHECK(other.all()[0].code == "rank-gave-up");
  CHECK_THAT(other.all()[0].message,
             Catch::EndsWith(" has given up: the system gives no thread for a rank of the "
                             "bootstrap"));
}

TEST_CASE("no thread: a rank of the bootstrap") {
  const SomeMask mask;
  Diagnostics diagnostics;
  auto job =
      host_job({.size = 1, .one_machine = true, .timeout = milliseconds(300'000)}, diagnostics);
  REQUIRE(job.has_value());
  const NoThreads none(0);
  CHECK(join_job(job->id, 0, 1, milliseconds(300'000), nullptr, diagnostics) == nullptr);
  check_reported(diagnostics, "a rank of the bootstrap");
}

}  // namespace
}  // namespace mscclc
