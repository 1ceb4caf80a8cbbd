#include "executor/cost/bound.h"

#include <catch2/catch.hpp>
#include <utility>

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

Program program_of(CollectiveKind kind, uint32_t ranks) {
  Program program;
  program.launch.align = 4;
  program.contract.kind = kind;
  program.contract.ranks = ranks;
  program.contract.shift = 1;
  return program;
}

Bound least_of(const Program& program, uint64_t part, const Machine& machine) {
  Call call;
  call.part_bytes = part;
  return least(program, call, machine);
}

Bound bound_of(CollectiveKind kind, uint32_t ranks, uint64_t part, const Machine& machine) {
  return least_of(program_of(kind, ranks), part, machine);
}

using OutAndIn = std::pair<uint64_t, uint64_t>;
OutAndIn both(const Bound::Bytes& bytes) { return {bytes.out, bytes.in}; }

/// What GPUs send and receive in parts of 1200 bytes.
OutAndIn of_four(CollectiveKind kind, bool by_switch) {
  Program program = program_of(kind, 4);
  program.ranks.resize(4);
  if (by_switch) program.ranks[0].channels.emplace_back().kind = ChannelKind::switch_;
  return both(least_of(program, 1200, machine_of(1, 4)).link);
}

}  // namespace

TEST_CASE("bytes that some GPU sends, and some GPU receives, at least") {
  const auto bytes = [](CollectiveKind kind) { return of_four(kind, false); };
  CHECK(bytes(CollectiveKind::allreduce) == OutAndIn(1800, 1800));  // 2 (R - 1) / R
  CHECK(bytes(CollectiveKind::reduce) == OutAndIn(1200, 1200));
  CHECK(bytes(CollectiveKind::broadcast) == OutAndIn(1200, 1200));
  CHECK(bytes(CollectiveKind::allgather) == OutAndIn(3600, 3600));  // R - 1 parts
  CHECK(bytes(CollectiveKind::gather) == OutAndIn(1200, 3600));
  CHECK(bytes(CollectiveKind::scatter) == OutAndIn(3600, 1200));
  CHECK(bytes(CollectiveKind::reducescatter) == OutAndIn(3600, 3600));
  CHECK(bytes(CollectiveKind::alltoall) == OutAndIn(3600, 3600));
  CHECK(bytes(CollectiveKind::sendrecv) == OutAndIn(1200, 1200));
  CHECK(bytes(CollectiveKind::barrier) == OutAndIn(0, 0));
}

TEST_CASE("a switch adds up and sends to all, so that data goes out, or comes in, once") {
  const auto bytes = [](CollectiveKind kind) { return of_four(kind, true); };
  CHECK(bytes(CollectiveKind::allreduce) == OutAndIn(1200, 1200));
  CHECK(bytes(CollectiveKind::reducescatter) == OutAndIn(3600, 1200));
  CHECK(bytes(CollectiveKind::allgather) == OutAndIn(1200, 3600));
}

TEST_CASE("a bound is the bytes over the rate, or a message that all wait for") {
  const Bound one = bound_of(CollectiveKind::allreduce, 4, 1200, machine_of(1, 4));
  CHECK(one.hops == 1);
  CHECK(one.ns == Approx(1800));
  CHECK(bound_of(CollectiveKind::allreduce, 4, 4, machine_of(1, 4)).ns == Approx(500));
  CHECK(bound_of(CollectiveKind::sendrecv, 4, 4, machine_of(1, 4)).ns == Approx(500));
  // Some ranks hear from none, so that calls in a row hide the message's way.
  CHECK(bound_of(CollectiveKind::broadcast, 4, 4, machine_of(1, 4)).ns == Approx(4));
  CHECK(bound_of(CollectiveKind::gather, 4, 4, machine_of(1, 4)).ns == Approx(12));
  // Two nodes of four GPUs: 2 (N - 1) / N messages into a node, by its four network ports.
  const Bound two = bound_of(CollectiveKind::allreduce, 8, 4000, machine_of(2, 4));
  CHECK(both(two.link) == OutAndIn(7000, 7000));
  CHECK(both(two.node) == OutAndIn(4000, 4000));
  CHECK(two.ns == Approx(10000));
  CHECK(bound_of(CollectiveKind::allreduce, 8, 4, machine_of(2, 4)).ns == Approx(5000));
  // Some neighbours are in one node.
  CHECK(bound_of(CollectiveKind::sendrecv, 8, 4, machine_of(2, 4)).ns == Approx(500));
  // One GPU a node: all goes over the network.
  CHECK(bound_of(CollectiveKind::broadcast, 2, 1000, machine_of(2, 1)).ns == Approx(10000));
}

TEST_CASE("a GPU's links and its own network port share what it needs") {
  Machine machine = machine_of(2, 2);
  machine.nic_mb_per_s = 1000;
  const Bound bound = bound_of(CollectiveKind::allgather, 4, 10000, machine);
  CHECK(bound.link.in == 30000);
  CHECK(bound.ns == Approx(15000));
}

TEST_CASE("one rank alone needs nothing") {
  const Bound alone = bound_of(CollectiveKind::allreduce, 1, 1200, machine_of(1, 4));
  CHECK(alone.link.most() == 0);
  CHECK(alone.ns == 0);
}

TEST_CASE("nodes get what their ranks lack") {
  const auto bytes = [](CollectiveKind kind) {
    return both(bound_of(kind, 4, 100, machine_of(2, 2)).node);
  };
  CHECK(bytes(CollectiveKind::allgather) == OutAndIn(200, 200));  // two parts, once
  CHECK(bytes(CollectiveKind::alltoall) == OutAndIn(400, 400));   // two rows for each rank
  CHECK(bytes(CollectiveKind::sendrecv) == OutAndIn(100, 100));   // one rank's comes from elsewhere
  CHECK(bytes(CollectiveKind::broadcast) == OutAndIn(100, 100));
  CHECK(bytes(CollectiveKind::scatter) == OutAndIn(200, 200));
}

TEST_CASE("what a custom contract promises from elsewhere has to come in, once") {
  Program program = program_of(CollectiveKind::custom, 2);
  Contract& contract = program.contract;
  contract.input = contract.output = {2};
  contract.promises = {{{0, 0}, false, {{1, 0}}}, {{0, 1}, false, {{0, 1}}}};
  CHECK(both(least_of(program, 1000, machine_of(1, 2)).link) == OutAndIn(250, 500));
  contract.promises[1].inputs = {{1, 0}};
  CHECK(least_of(program, 1000, machine_of(1, 2)).link.in == 500);
  contract.promises[1].inputs = {{1, 1}};
  CHECK(least_of(program, 1000, machine_of(1, 2)).link.in == 1000);
}

}  // namespace mscclc::cost
