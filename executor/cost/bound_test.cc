#include "executor/cost/bound.h"

#include <catch2/catch.hpp>

namespace mscclc::cost {
namespace {

Machine machine_of(uint32_t nodes, uint32_t gpus) {
  Machine machine;
  machine.nodes = nodes;
  machine.gpus = gpus;
  machine.nvlink_latency_ns = 500;
  machine.nvlink_mb_per_s = 1000;  // a byte a nanosecond
  machine.nic_latency_ns = 5000;
  machine.nic_mb_per_s = 100;
  return machine;
}

Bound bound_of(CollectiveKind kind, uint32_t ranks, uint64_t part, const Machine& machine) {
  Contract contract;
  contract.kind = kind;
  contract.ranks = ranks;
  contract.shift = 1;
  return least(contract, part, machine);
}

}  // namespace

TEST_CASE("bytes that some GPU sends or receives at least") {
  const Machine machine = machine_of(1, 4);
  const auto bytes = [&](CollectiveKind kind) {
    return bound_of(kind, 4, 1200, machine).link_bytes;
  };
  CHECK(bytes(CollectiveKind::allreduce) == 1800);  // 2 (R - 1) / R
  CHECK(bytes(CollectiveKind::reduce) == 1200);
  CHECK(bytes(CollectiveKind::broadcast) == 1200);
  CHECK(bytes(CollectiveKind::allgather) == 3600);  // R - 1 parts
  CHECK(bytes(CollectiveKind::gather) == 3600);
  CHECK(bytes(CollectiveKind::scatter) == 3600);
  CHECK(bytes(CollectiveKind::reducescatter) == 3600);
  CHECK(bytes(CollectiveKind::alltoall) == 3600);
  CHECK(bytes(CollectiveKind::sendrecv) == 1200);
  CHECK(bytes(CollectiveKind::barrier) == 0);
}

TEST_CASE("a bound is the bytes over the rate, and one message's way") {
  const Bound one = bound_of(CollectiveKind::allreduce, 4, 1200, machine_of(1, 4));
  CHECK(one.rounds == 1);
  CHECK(one.ns == Approx(1800 + 500));
  // Two nodes of four GPUs: 2 (N - 1) / N messages into a node, by its four network ports.
  const Bound two = bound_of(CollectiveKind::allreduce, 8, 4000, machine_of(2, 4));
  CHECK(two.link_bytes == 7000);
  CHECK(two.node_bytes == 4000);
  CHECK(two.ns == Approx(10000 + 5000));
  // One GPU a node: all goes over the network.
  const Bound far = bound_of(CollectiveKind::broadcast, 2, 1000, machine_of(2, 1));
  CHECK(far.ns == Approx(10000 + 5000));
}

TEST_CASE("a switch that adds up sends the sum once") {
  Contract contract;
  contract.kind = CollectiveKind::allreduce;
  contract.ranks = 4;
  CHECK(least(contract, 1200, machine_of(1, 4), true).link_bytes == 1200);
  contract.kind = CollectiveKind::reducescatter;
  CHECK(least(contract, 1200, machine_of(1, 4), true).link_bytes == 3600);
}

TEST_CASE("one rank alone needs nothing") {
  const Bound alone = bound_of(CollectiveKind::allreduce, 1, 1200, machine_of(1, 4));
  CHECK(alone.link_bytes == 0);
  CHECK(alone.ns == 0);
}

TEST_CASE("nodes get what their ranks lack") {
  const Machine machine = machine_of(2, 2);
  const auto bytes = [&](CollectiveKind kind) {
    return bound_of(kind, 4, 100, machine).node_bytes;
  };
  CHECK(bytes(CollectiveKind::allgather) == 200);  // two parts of the other node, once
  CHECK(bytes(CollectiveKind::alltoall) == 400);   // two rows for each of its ranks
  CHECK(bytes(CollectiveKind::sendrecv) == 100);   // one of its ranks is sent to from elsewhere
  CHECK(bytes(CollectiveKind::broadcast) == 100);
  CHECK(bytes(CollectiveKind::scatter) == 200);
}

TEST_CASE("what a custom contract promises from elsewhere has to come in") {
  Contract contract;
  contract.kind = CollectiveKind::custom;
  contract.ranks = 2;
  contract.input = contract.output = {2};
  contract.promises = {{{0, 0}, false, {{1, 0}}}, {{0, 1}, false, {{0, 1}}}};
  CHECK(least(contract, 1000, machine_of(1, 2)).link_bytes == 500);
}

}  // namespace mscclc::cost
