// Many ranks of one machine, each a process: they meet, exchange the handles of their memory, load
// a plan and call it.
#include <fmt/format.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "ir/support/sanitized.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// CPU time of all ranks that have ended.
double cpu_of_ranks() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// What a rank does once it is connected; "" if nothing goes wrong.
testing::RankBody call_neighbour(uint32_t ranks) {
  const CompiledWorld world("sendrecv", {{"R", std::to_string(ranks)}});
  REQUIRE(world.errors() == "");
  const auto plan = std::make_shared<const Program>(world.program());
  return [plan](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    RankRunner runner(communicator, plan,
                      {.load = {.max_bytes = 4096, .proof = ProofPolicy::skip}});
    if (!runner.load(diagnostics)) return testing::text(diagnostics);
    const bool right =
        runner.run({.bytes = 4096, .iterations = 1}, diagnostics).run.status == RunStatus::right;
    return right ? "" : testing::text(diagnostics);
  };
}

const testing::Timeouts kLong{std::chrono::minutes(5)};

constexpr uint32_t kMeet = testing::if_sanitized(64, 256);
constexpr uint32_t kCall = testing::if_sanitized(16, 64);

std::string nothing_more(Communicator&) { return ""; }

TEST_CASE("many ranks of one machine make a communicator") {
  CHECK(testing::run_processes(kMeet, nothing_more, kLong) == "");
}

TEST_CASE("many ranks of one machine load a plan and call it") {
  CHECK(testing::run_processes(kCall, call_neighbour(kCall), kLong) == "");
}

/// Prints how long it takes, from the first fork to the end of the last rank.
void measure(const char* what, uint32_t ranks, const testing::RankBody& body) {
  const double cpu = cpu_of_ranks();
  const auto start = Clock::now();
  CHECK(testing::run_processes(ranks, body, kLong) == "");
  const std::chrono::duration<double> wall = Clock::now() - start;
  fmt::print("{:>5} ranks {:<28} {:6.2f} s, CPU time {:6.2f} s\n", ranks, what, wall.count(),
             cpu_of_ranks() - cpu);
}

// Where there are far more ranks than processors, a call is a matter of patience: their blocks
// poll.
TEST_CASE("how long many ranks take", "[.][full]") {
  for (const uint32_t ranks : {64u, 256u, 1024u})
    measure("make a communicator", ranks, nothing_more);
  for (const uint32_t ranks : {64u, 256u}) {
    measure("load a plan and call it, too", ranks, call_neighbour(ranks));
  }
}

}  // namespace
}  // namespace mscclc
