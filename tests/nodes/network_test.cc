// Jobs of nodes that a bad network joins: packets that come late, in another order or not at all; a
// network that is cut; a rank that is killed. Each node has a network namespace of its own.
#include <signal.h>

#include <catch2/catch.hpp>
#include <iostream>
#include <thread>

#include "tests/helpers/runtime/longer_times.h"
#include "tests/nodes/far_job.h"

namespace mscclc {
namespace {

using testing::blames_any;
using testing::far_calls;
using testing::FarJob;
using testing::FarNetwork;
using namespace std::chrono_literals;

/// False: namespaces are not permitted here; the tests over loopback say what they can.
bool made(FarNetwork& network) {
  const std::string why = network.make(FarJob::kNodes);
  if (!why.empty()) std::cout << "left out: " << why << "\n";
  return why.empty();
}

TEST_CASE("results are right however late, lost or disordered packets are") {
  FarNetwork network;
  if (!made(network)) return;
  network.faults().delay_us = 1000;
  network.faults().lost = 10;
  network.faults().reordered = 50;
  for (const char* name :
       {"allreduce_hier", "allreduce_hier_packets", "allreduce_hier_pipeline", "allgather_hier",
        "reducescatter_hier", "alltoall_hier", "broadcast_hier", "broadcast_hier_packets",
        "allgather_nodes", "allreduce_nodes", "alltoall_nodes", "broadcast_nodes", "reduce_nodes",
        "reducescatter_nodes"}) {
    INFO(name);
    const auto said =
        run_far_ranks(network, far_calls(name, {0, 4, 1000, 65544, 1 << 20}, 2), FarJob::kLong);
    CHECK(said == std::vector<std::string>(FarJob::kRanks));
  }
  CHECK(network.faults().passed > 1000);
}

// Before the cut no rank may be taken for dead.
TEST_CASE("a network that is cut ends the job at every rank, which names one beyond the cut") {
  const auto is_right = [](int factor) {
    FarNetwork network;
    if (!made(network)) return true;
    network.faults().cut_after = 20'000;
    const auto said = run_far_ranks(network, far_calls("allgather_hier", {16 << 20}, 1000),
                                    factor * FarJob::kShort);
    bool all = true;
    for (uint32_t rank = 0; rank < FarJob::kRanks; ++rank) {
      UNSCOPED_INFO("rank " << rank << ": " << said[rank]);
      all &=
          rank < FarJob::kOnNode ? blames_any(said[rank], {2, 3}) : blames_any(said[rank], {0, 1});
    }
    return all;
  };
  CHECK(testing::right_in_longer_times(is_right, {1, 10}));
}

/// Rank 3 dies in the middle of a call: whether all others name it.
bool named_when_killed(FarNetwork& network) {
  network.faults().delay_us = 500;
  network.faults().lost = 5;
  const auto body = far_calls("allgather_hier", {16 << 20}, 1000);
  const auto dying = [&](Communicator& communicator) -> std::string {
    if (communicator.rank() == 3) {
      std::thread([&] {
        while (network.faults().passed < 20'000) std::this_thread::sleep_for(1ms);
        ::raise(SIGKILL);
      }).detach();
    }
    return body(communicator);
  };
  const auto said = run_far_ranks(network, dying, FarJob::kLong);
  bool all = true;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    UNSCOPED_INFO("rank " << rank << ": " << said[rank]);
    all &= blames_any(said[rank], {3});
  }
  return all;
}

TEST_CASE("a rank that is killed in the middle of a call ends the job at every rank") {
  // One that ends because of it is gone, too, and may be missed first.
  const auto is_right = [] {
    FarNetwork network;
    return !made(network) || named_when_killed(network);
  };
  CHECK(testing::right_in_a_try(is_right));
}

}  // namespace
}  // namespace mscclc
