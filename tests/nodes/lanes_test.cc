// Port channels whose lanes do not need the peer's memory mapped: programs of the library over
// lanes of messages, ranks as processes. What is mapped shows in /proc/self/maps.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "runtime/api/host_device.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/library/library.h"
#include "tests/nodes/checked_calls.h"
#include "tests/nodes/mapped_files.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::run_processes;
using testing::run_threads;

constexpr uint64_t kMaxLaneBytes = 256 << 10;

std::unique_ptr<Device> open_messages(uint32_t, Diagnostics& diagnostics) {
  return make_host_device(diagnostics, {}, HostLanes::messages);
}

/// As on two machines: nothing but lanes leads to the peers.
std::unique_ptr<Device> open_apart(uint32_t, Diagnostics& diagnostics) {
  const Link link{.kind = LinkKind::pcie, .access = false, .why = "it is far away", .lanes = true};
  return make_host_device(diagnostics, link, HostLanes::messages);
}

bool has_ports(const Program& program) {
  return std::ranges::any_of(program.ranks, [](const Rank& rank) {
    return std::ranges::any_of(rank.channels,
                               [](const Channel& c) { return c.kind == ChannelKind::port; });
  });
}

testing::CheckedCalls calls_of(const CompiledWorld& world, bool zero_copy) {
  auto calls = testing::checked_calls(world, kMaxLaneBytes);
  calls.max_bytes = kMaxLaneBytes;
  calls.zero_copy = zero_copy;
  return calls;
}

/// Calls `check` for every program of the library that has ports, over as many ranks as this
/// machine runs quickly.
template <class Check>
void for_programs_with_ports(Check check) {
  uint32_t programs = 0;
  for (const LibraryProgram& program : library()) {
    for (const Defines& defines : program.worlds) {
      const CompiledWorld world(program.name, defines);
      INFO(program.name << " " << text(defines));
      REQUIRE(world.errors() == "");
      const size_t ranks = world.program().ranks.size();
      if (!has_ports(world.program())) break;
      if (ranks != 2 && ranks != 4) continue;
      check(world, static_cast<uint32_t>(ranks));
      ++programs;
    }
  }
  CHECK(programs > 15);
}

TEST_CASE("the library's ports over lanes of messages, as processes") {
  for_programs_with_ports([](const CompiledWorld& world, uint32_t ranks) {
    CHECK(run_processes(ranks, calls_of(world, false), {}, open_messages) == "");
  });
}

TEST_CASE("the library's ports over lanes of messages, without copies, as threads") {
  for_programs_with_ports([](const CompiledWorld& world, uint32_t ranks) {
    CHECK(run_threads(ranks, calls_of(world, true), {}, open_messages) == "");
  });
}

TEST_CASE("memory that only lanes reach is not mapped") {
  const RunnerOptions options{.load = {.max_bytes = 4096}, .registered = false};
  const size_t copies = testing::files_mapped_by_ports(options, testing::open_host);
  const size_t messages = testing::files_mapped_by_ports(options, open_messages);
  INFO(copies << " " << messages);
  CHECK(copies - messages == 1);  // the peer's block: its counts of signals, its staged output
}

TEST_CASE("ports lead to peers whose memory blocks cannot reach, memory channels do not") {
  const auto run = [](const char* name, const Defines& defines) {
    const CompiledWorld world(name, defines);
    REQUIRE(world.errors() == "");
    return run_processes(static_cast<uint32_t>(world.program().ranks.size()),
                         calls_of(world, false), {}, open_apart);
  };
  CHECK(run("sendrecv_port", {{"R", "3"}}) == "");
  CHECK(run("sendrecv_port", {{"R", "4"}, {"shift", "2"}}) == "");
  for (const char* mixed : {"sendrecv", "alltoall_copy_engine"}) {
    CHECK_THAT(run(mixed, {{"R", "2"}}), Catch::Contains(": it is far away"));
  }
}

/// One rank leaves in the middle; the others' messages to it find no process, or wait. Whether they
/// name it; `silence`: by which they know it of one that is stopped.
bool named_when_it_leaves(int signal, std::chrono::seconds silence) {
  const CompiledWorld world("alltoall_copy_engine", {{"R", "3"}});
  REQUIRE(world.errors() == "");
  const auto plan = std::make_shared<const Program>(world.program());
  constexpr uint32_t kVictim = 1;
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    RankRunner runner(communicator, plan, {.load = {.max_bytes = 12 << 20}});
    if (!runner.load(diagnostics)) return testing::text(diagnostics);
    const RunSpec spec{.bytes = 12 << 20, .iterations = 1};  // more than a socket holds
    (void)runner.run(spec, diagnostics);
    if (communicator.rank() == kVictim) raise(signal);
    (void)runner.run(spec, diagnostics);
    return testing::text(diagnostics);
  };
  testing::Timeouts timeouts;
  if (signal == SIGSTOP) {
    timeouts.silence = silence;
    timeouts.stopped = kVictim;
  }
  const auto ended = testing::processes(3, body, timeouts, {}, open_messages);
  for (const uint32_t r : {0u, 2u}) UNSCOPED_INFO("rank " << r << ": " << ended[r].said);
  return testing::all_name(ended, kVictim);
}

TEST_CASE("a rank that dies ends the lanes to it") {
  CHECK(testing::right_in_a_try([] { return named_when_it_leaves(SIGKILL, {}); }));
}
TEST_CASE("a rank that is stopped holds no lane to it forever") {
  const auto is_right = [](int factor) {
    return named_when_it_leaves(SIGSTOP, factor * std::chrono::seconds(3));
  };
  CHECK(testing::right_in_longer_times(is_right));
}

}  // namespace
}  // namespace mscclc
