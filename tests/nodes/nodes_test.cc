// A machine cut into nodes: blocks share memory inside a node, ports go over MSCCLC_LANE between
// them, ranks as processes and as threads.
#include <signal.h>

#include <catch2/catch.hpp>

#include "ir/support/sanitized.h"
#include "runtime/api/host_device.h"
#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/named_threads.h"
#include "tests/library/library.h"
#include "tests/nodes/checked_calls.h"
#include "tests/nodes/mapped_files.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::checked_calls;
using testing::CheckedCalls;
using testing::run_processes;
using testing::run_threads;

/// Devices of ranks in nodes of so many.
testing::OpenDevice nodes_of(uint32_t ranks) {
  return [ranks](uint32_t rank, Diagnostics& diagnostics) {
    return make_host_device(diagnostics, {}, HostLanes::copies, rank / ranks);
  };
}

uint32_t number(const Defines& defines, std::string_view name) {
  for (const auto& [key, value] : defines) {
    if (key == name) return static_cast<uint32_t>(std::stoul(value));
  }
  return 0;
}

/// Calls `check(world, ranks, ranks of a node)` for the library's programs for nodes, at 2 x
/// `gpus`.
template <class Check>
void for_programs_of_nodes(uint32_t gpus, Check check) {
  uint32_t programs = 0;
  for (const LibraryProgram& program : library()) {
    for (const Defines& defines : program.worlds) {
      if (number(defines, "gpus") != gpus || number(defines, "world") != 2 * gpus) continue;
      const CompiledWorld world(program.name, defines);
      INFO(program.name << " " << text(defines));
      REQUIRE(world.errors() == "");
      check(world, 2 * gpus, gpus);
      ++programs;
    }
  }
  CHECK(programs >= 12);
}

TEST_CASE("the library's programs for nodes 2 x 2 processes") {
  for_programs_of_nodes(2, [](const CompiledWorld& world, uint32_t ranks, uint32_t node) {
    CHECK(run_processes(ranks, checked_calls(world), {}, nodes_of(node)) == "");
  });
}

TEST_CASE("the library's programs for nodes 2 x 4 processes") {
  if (testing::kSanitized) return;  // more ranks of the same
  for_programs_of_nodes(4, [](const CompiledWorld& world, uint32_t ranks, uint32_t node) {
    CHECK(run_processes(ranks, checked_calls(world), {}, nodes_of(node)) == "");
  });
}

TEST_CASE("registered buffers of other nodes are reached without being mapped") {
  for_programs_of_nodes(2, [](const CompiledWorld& world, uint32_t ranks, uint32_t node) {
    CheckedCalls calls = checked_calls(world);
    calls.zero_copy = true;
    CHECK(run_threads(ranks, calls, {}, nodes_of(node)) == "");
  });
}

TEST_CASE("16 MiB between nodes") {
  for (const char* name : {"allreduce_hier_pipeline", "allgather_hier", "reducescatter_hier"}) {
    const CompiledWorld world(name, {{"world", "4"}, {"gpus", "2"}});
    REQUIRE(world.errors() == "");
    CheckedCalls calls{std::make_shared<const Program>(world.program()), {}};
    calls.specs = {{.bytes = 16 << 20, .dtype = Dtype::f32, .iterations = 2}};
    CHECK(run_processes(4, calls, {}, nodes_of(2)) == "");
  }
}

TEST_CASE("ports alone between nodes of one rank") {
  for (const char* ranks : {"2", "3", "4"}) {
    const CompiledWorld world("sendrecv_port", {{"R", ranks}});
    REQUIRE(world.errors() == "");
    CHECK(run_processes(number({{"R", ranks}}, "R"), checked_calls(world), {}, nodes_of(1)) == "");
  }
}

TEST_CASE("programs for nodes of one rank, call after call") {
  for (const char* name :
       {"allgather_nodes", "allreduce_nodes", "alltoall_nodes", "broadcast_nodes", "reduce_nodes",
        "reducescatter_nodes", "sendrecv_nodes"}) {
    for (const uint32_t ranks : {2u, 3u}) {
      if (ranks == 3 && name == std::string("sendrecv_nodes")) continue;  // it is for two
      const CompiledWorld world(name, {{"R", std::to_string(ranks)}, {"T", "2"}});
      INFO(name << " " << ranks);
      REQUIRE(world.errors() == "");
      CheckedCalls calls = checked_calls(world);
      calls.specs.push_back({.bytes = 1 << 18, .dtype = Dtype::f32, .iterations = 40});
      CHECK(run_processes(ranks, calls, {}, nodes_of(1)) == "");
    }
  }
}

TEST_CASE("memory of another node is not mapped") {
  const RunnerOptions options{.load = {.max_bytes = 4096, .zero_copy = true}};
  const size_t shared = testing::files_mapped_by_ports(options, testing::open_host);
  const size_t apart = testing::files_mapped_by_ports(options, nodes_of(1));
  INFO(shared << " " << apart);
  // The peer's counts of signals, its registered input and output, and what calls are compared in;
  // and this rank's counts, which only lanes write then: they are no file.
  CHECK(shared - apart == 5);
}

TEST_CASE("ops that need a peer's memory on another node are refused at load, with a remedy") {
  const auto said = [](const char* name, const Defines& defines, uint32_t ranks) {
    const CompiledWorld world(name, defines);
    REQUIRE(world.errors() == "");
    return testing::threads(ranks, checked_calls(world), {}, nodes_of(ranks / 2))[0];
  };
  const std::string remedy =
      "note: only port channels lead there: declare the channel as port(...), or take a plan for "
      "several nodes, such as the library's *_hier with 'gpus' set to the ranks of a node\n";
  CHECK_THAT(said("sendrecv", {{"R", "2"}}, 2),
             Catch::Contains(
                 "sendrecv.mscl:18:5: error: rank 0 cannot reach the memory of rank 1: it is on "
                 "another node\n") &&
                 Catch::Contains("note: in 'signal prev[0] relaxed' (rank 0, tb 0)\n") &&
                 Catch::Contains(remedy));
}

/// One rank leaves in the middle of a call: whether all others name it. `silence`: by which they
/// know it of one that is stopped.
bool named_when_it_leaves(int signal, std::chrono::seconds silence) {
  const CompiledWorld world("allgather_hier", {{"world", "4"}, {"gpus", "2"}});
  REQUIRE(world.errors() == "");
  const auto plan = std::make_shared<const Program>(world.program());
  constexpr uint32_t kVictim = 1;
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    RankRunner runner(communicator, plan, {.load = {.max_bytes = 64 << 20}});
    if (!runner.load(diagnostics)) return testing::text(diagnostics);
    const RunSpec spec{.bytes = 64 << 20, .iterations = 1};  // more than sockets hold
    (void)runner.run(spec, diagnostics);
    if (communicator.rank() == kVictim) raise(signal);
    (void)runner.run(spec, diagnostics);
    return testing::text(diagnostics);
  };
  testing::Timeouts timeouts(std::chrono::seconds(600));
  if (signal == SIGSTOP) {
    timeouts.silence = silence;
    timeouts.stopped = kVictim;
  }
  const auto ended = testing::processes(4, body, timeouts, {}, nodes_of(2));
  for (const uint32_t r : {0u, 2u, 3u}) UNSCOPED_INFO("rank " << r << ": " << ended[r].said);
  return testing::all_name(ended, kVictim);
}

TEST_CASE("a rank that dies ends the job on all nodes") {
  CHECK(testing::right_in_a_try([] { return named_when_it_leaves(SIGKILL, {}); }));
}
TEST_CASE("a rank that is stopped ends the job on all nodes") {
  const auto is_right = [](int factor) {
    return named_when_it_leaves(SIGSTOP, factor * std::chrono::seconds(3));
  };
  CHECK(testing::right_in_longer_times(is_right));
}

TEST_CASE("nodes leave no threads and no descriptors") {
  const CompiledWorld world("allreduce_hier", {{"world", "4"}, {"gpus", "2"}});
  REQUIRE(world.errors() == "");
  CheckedCalls calls{std::make_shared<const Program>(world.program()), {}};
  calls.specs = {{.bytes = 65536, .iterations = 2}};
  const auto run = [&] { CHECK(run_threads(4, calls, {}, nodes_of(2)) == ""); };
  run();  // what a process keeps, such as its watchdog
  const size_t threads = testing::running_threads(), descriptors = testing::open_descriptors();
  for (int i = 0; i < 3; ++i) run();
  CHECK(testing::threads_come_down_to(threads));
  CHECK(testing::open_descriptors() == descriptors);
}

}  // namespace
}  // namespace mscclc
