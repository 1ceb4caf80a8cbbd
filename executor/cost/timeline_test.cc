#include "executor/cost/timeline.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "executor/cost/critical_path.h"
#include "executor/cost/model.h"
#include "executor/cost/work.h"
#include "executor/testing/op_plans.h"
#include "executor/testing/test_plans.h"

namespace mscclc::cost {
namespace {

using testing::TestProgram;

/// Nothing takes time but a link's latency (1000 ns) and its bytes (one a nanosecond).
Machine plain_machine(uint32_t gpus) {
  Machine m;
  m.name = "plain";
  m.gpus = gpus;
  for (const MachineField& field : machine_fields()) {
    m.*field.value = field.least == 0 ? 0 : field.most;
  }
  m.nvlink_latency_ns = 1000;
  m.nvlink_mb_per_s = 1000;
  return m;
}

/// Of one GPU each: 4000 ns and 2 ns a byte from one to the other.
Machine two_nodes() {
  Machine m = plain_machine(1);
  m.nodes = 2;
  m.nic_latency_ns = 4000;
  m.nic_mb_per_s = 500;
  m.nic_both_mb_per_s = m.nic_gpu_both_mb_per_s = 1000;
  return m;
}

Timeline timeline_of(const Program& program, const Machine& machine, uint64_t bytes,
                     Dtype dtype = Dtype::f32) {
  Diagnostics diagnostics;
  Model model(program);
  const auto timeline = model.predict(call_of(program, bytes, dtype), machine, diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(timeline);
  return *timeline;
}

std::string refusal(const Program& program, const Machine& machine) {
  Diagnostics diagnostics;
  Model model(program);
  CHECK_FALSE(model.predict(call_of(program, 4096, Dtype::f32), machine, diagnostics));
  REQUIRE(diagnostics.all().size() == 1);
  return diagnostics.all()[0].code + ": " + diagnostics.all()[0].message;
}

/// The path goes from 0 to the end without gaps.
void check_path(const Timeline& timeline) {
  const std::vector<PathPart> path = critical_path(timeline);
  REQUIRE_FALSE(path.empty());
  CHECK(path.front().begin == 0);
  for (size_t i = 1; i < path.size(); ++i) CHECK(path[i].begin == path[i - 1].end);
  CHECK(path.back().end == Approx(timeline.alone_ns));
  double sum = 0;
  for (const double share : shares(path)) sum += share;
  CHECK(sum == Approx(timeline.alone_ns));
}

double share_of(const Timeline& timeline, Cause cause) {
  return shares(critical_path(timeline))[static_cast<size_t>(cause)];
}

}  // namespace

TEST_CASE("an exchange takes two ways and its bytes") {
  const TestProgram t = testing::exchange();
  const Timeline timeline = timeline_of(t.program, plain_machine(2), 5000);
  CHECK(timeline.alone_ns == Approx(1000 + 5000 + 1000));
  CHECK(timeline.back_to_back_ns == Approx(7000));
  CHECK(timeline.hops == 2);
  check_path(timeline);
  CHECK(share_of(timeline, Cause::latency) == Approx(2000));
  CHECK(share_of(timeline, Cause::link) == Approx(5000));
}

TEST_CASE("each cost of a machine counts where it belongs") {
  const TestProgram t = testing::exchange();
  const double plain = timeline_of(t.program, plain_machine(2), 5000).alone_ns;
  const auto more = [&](uint64_t Machine::*field, uint64_t ns) {
    Machine m = plain_machine(2);
    m.*field = ns;
    return timeline_of(t.program, m, 5000).alone_ns - plain;
  };
  CHECK(more(&Machine::launch_call_ns, 100) == Approx(100));
  CHECK(more(&Machine::launch_block_ns, 100) == Approx(100));  // one block
  CHECK(more(&Machine::step_sync_ns, 100) == Approx(200));     // two syncs
  CHECK(more(&Machine::step_flag_ns, 100) == Approx(400));     // two signals, two waits
  CHECK(more(&Machine::step_fence_ns, 100) == Approx(100));    // the signal after the put
  CHECK(more(&Machine::proxy_post_ns, 100) == Approx(0));      // there is no port
  CHECK(more(&Machine::nic_latency_ns, 100) == Approx(0));
}

TEST_CASE("a slow block, not its link, may be what takes the time") {
  const TestProgram t = testing::exchange();
  Machine m = plain_machine(2);
  m.block_remote_mb_per_s = 500;
  const Timeline timeline = timeline_of(t.program, m, 5000);
  CHECK(timeline.alone_ns == Approx(2000 + 10000));
  CHECK(share_of(timeline, Cause::block) == Approx(10000));
}

TEST_CASE("packets need no signal, and what waits for them goes on with the last") {
  const TestProgram t = testing::one_shot(2, 1, PacketFormat::LL16);
  Machine m = plain_machine(2);
  const Timeline timeline = timeline_of(t.program, m, 4096);
  CHECK(timeline.alone_ns == Approx(2 * 4096 + 1000));  // twice the bytes on the wire
  CHECK(timeline.hops == 1);
  CHECK(timeline.loads[shared_index(0, Shared::egress)] == 8192);
  CHECK(timeline.loads[shared_index(1, Shared::ingress)] == 8192);
  check_path(timeline);
}

TEST_CASE("packets to peers take their way, whatever else an op writes first") {
  // Shares go, and sums come back: to the rank's own slots without a way, to the others with one.
  for (const std::string name : {"reduce_packets", "reduce_copy_packets", "reduce_send_packets",
                                 "reduce_copy_send_packets"}) {
    const auto plan = std::ranges::find(testing::op_plans(), name, &testing::OpPlan::name);
    REQUIRE(plan != testing::op_plans().end());
    const TestProgram t = plan->build(PacketFormat::LL16);
    Machine far = plain_machine(3);
    far.nvlink_latency_ns = 100'000;
    CHECK(timeline_of(t.program, far, 48).alone_ns == Approx(200'000).epsilon(0.01));
  }
}

TEST_CASE("hops count messages, whether a block had to wait for them or not") {
  const TestProgram t = testing::one_shot(4, 1, PacketFormat::LL16);
  Machine m = plain_machine(4);
  CHECK(timeline_of(t.program, m, 1 << 20).hops == 1);
  // All has come long before a slow block looks.
  m.nvlink_latency_ns = 0;
  m.nvlink_mb_per_s = m.memory_mb_per_s;
  m.block_packet_round_ns = 1000;
  CHECK(timeline_of(t.program, m, 1 << 20).hops == 1);
}

TEST_CASE("kernels of packets have no more than 512 threads, whatever a plan asks for") {
  TestProgram t = testing::one_shot(2, 1, PacketFormat::LL16);
  Machine m = plain_machine(2);
  m.block_packet_round_ns = 1'000'000;
  const auto taken = [&](uint32_t threads) {
    t.program.launch.threads = threads;
    return timeline_of(t.program, m, 64 << 10).alone_ns;
  };
  CHECK(taken(1024) == taken(512));
  CHECK(taken(256) > 1.8 * taken(512));
}

TEST_CASE("calls of packets that a GPU has no room for two of begin late") {
  TestProgram t = testing::one_shot(2, 1, PacketFormat::LL16);
  Machine m = plain_machine(2);
  m.launch_multiprocessors = 1;
  m.launch_packet_threads = 600;
  const auto later = [&](uint32_t threads, double Timeline::*time) {
    t.program.launch.threads = threads;
    m.launch_late_ns = 0;
    const double before = timeline_of(t.program, m, 4096).*time;
    m.launch_late_ns = 300;
    return timeline_of(t.program, m, 4096).*time - before;
  };
  CHECK(later(300, &Timeline::back_to_back_ns) == Approx(0).margin(1e-6));
  CHECK(later(320, &Timeline::back_to_back_ns) == Approx(300));
  CHECK(later(1024, &Timeline::back_to_back_ns) == Approx(300));
  CHECK(later(1024, &Timeline::alone_ns) == Approx(0).margin(1e-6));
}

TEST_CASE("sums along the tree, and exact ones of floats, cost more for each source and round") {
  const auto summed = [](Summation summation) {
    TestProgram t = testing::one_shot(4, 1, PacketFormat::LL16);
    for (Rank& rank : t.program.ranks) {
      for (Op& op : rank.ops) {
        if (op.kind == OpKind::reduce_packets) op.summation = summation;
      }
    }
    return t;
  };
  Machine m = plain_machine(4);
  const double plain = timeline_of(summed(Summation::in_turn).program, m, 64).alone_ns;
  m.sum_tree_ns = 100000;
  m.sum_exact_ns = 200000;
  const auto more = [&](Summation summation, Dtype dtype) {
    return timeline_of(summed(summation).program, m, 64, dtype).alone_ns - plain;
  };
  // Four sources in one round, of which the rest of the call takes nearly nothing.
  CHECK(more(Summation::in_turn, Dtype::f32) == 0);
  const double tree = more(Summation::tree, Dtype::f32);
  CHECK(tree == Approx(400000).epsilon(0.01));
  CHECK(more(Summation::tree, Dtype::i32) == tree);
  CHECK(more(Summation::exact, Dtype::f32) == Approx(800000).epsilon(0.01));
  CHECK(more(Summation::exact, Dtype::i32) == 0);
}

TEST_CASE("a port goes by the proxy and the copy engine") {
  const TestProgram t = testing::exchange(ChannelKind::port);
  Machine m = plain_machine(2);
  const double plain = timeline_of(t.program, m, 5000).alone_ns;
  CHECK(plain == Approx(7000));
  m.copy_engine_start_ns = 300;
  CHECK(timeline_of(t.program, m, 5000).alone_ns == Approx(plain + 300));
  m.proxy_request_ns = 10;  // the opening signal, the put; the closing signal waits meanwhile
  CHECK(timeline_of(t.program, m, 5000).alone_ns == Approx(plain + 300 + 20));
  check_path(timeline_of(t.program, m, 5000));
}

TEST_CASE("between nodes a port goes over the network") {
  const TestProgram t = testing::exchange(ChannelKind::port);
  const Timeline timeline = timeline_of(t.program, two_nodes(), 5000);
  CHECK(timeline.alone_ns == Approx(4000 + 10000 + 4000));
  CHECK(timeline.loads[shared_index(0, Shared::nic_out)] == 5000);
}

TEST_CASE("the proxy is busy with the bytes of what is not long") {
  const TestProgram t = testing::exchange(ChannelKind::port);
  Machine m = two_nodes();
  const double plain = timeline_of(t.program, m, 5000).alone_ns;
  m.nic_proxy_mb_per_s = 100;
  CHECK(timeline_of(t.program, m, 5000).alone_ns == Approx(plain));  // from 0 bytes on all is long
  m.nic_long_bytes = 5001;
  CHECK(timeline_of(t.program, m, 5000).alone_ns == Approx(plain + 50000));
}

TEST_CASE("what one rank sends another goes out in order") {
  TestProgram t = testing::exchange(ChannelKind::port);
  for (Rank& rank : t.program.ranks) {  // twice: put, sync, signal
    const std::vector<Op> again(rank.ops.begin() + 3, rank.ops.begin() + 6);
    rank.ops.insert(rank.ops.begin() + 6, again.begin(), again.end());
    rank.ops.push_back(rank.ops.back());  // and wait
  }
  const Timeline timeline = timeline_of(t.program, two_nodes(), 5000);
  std::vector<double> waits;
  for (const StepRecord& r : timeline.records) {
    if (r.rank == 0 && r.kind == device::StepKind::wait) waits.push_back(r.end);
  }
  REQUIRE(waits.size() == 3);
  CHECK(waits[1] == Approx(4000 + 10000 + 4000));
  CHECK(waits[2] == Approx(4000 + 20000 + 4000));
}

TEST_CASE("sent and received together a GPU may get less, for what lies in its memory still less") {
  const TestProgram t = testing::exchange(ChannelKind::port);
  Machine m = two_nodes();
  m.nic_both_mb_per_s = 800;  // of scratch
  CHECK(timeline_of(t.program, m, 5000).alone_ns == Approx(8000 + 10000));
  m.nic_gpu_both_mb_per_s = 400;
  CHECK(timeline_of(t.program, m, 5000).alone_ns == Approx(8000 + 10000 / 0.4));
  m.gpus = 2;  // in one node: no network
  CHECK(timeline_of(t.program, m, 5000).alone_ns == Approx(7000));
}

TEST_CASE("scratch lies in the host's memory where only ports lead to a rank") {
  const auto with_scratch = [](ChannelKind kind) {
    TestProgram t = testing::exchange(kind);
    for (uint32_t r = 0; r < 2; ++r) {
      const uint32_t mine = t.buffer(r, "mine", 1, PacketFormat::none);
      testing::add_op(t, r, 0, OpKind::copy, {testing::local(mine, 0)},
                      {testing::local(kInput, 0)});
    }
    return t;
  };
  const auto slow_host_takes = [](const TestProgram& t, Machine m) {
    const double plain = timeline_of(t.program, m, 5000).alone_ns;
    m.pcie_mb_per_s = 100;
    return timeline_of(t.program, m, 5000).alone_ns - plain;
  };
  CHECK(slow_host_takes(with_scratch(ChannelKind::port), two_nodes()) == Approx(50000));
  CHECK(slow_host_takes(with_scratch(ChannelKind::memory), plain_machine(2)) == 0);
}

TEST_CASE("a block that reads packets takes longer while others of its GPU send") {
  // Each rank sends 32 KiB in packets, four rounds of a block's threads, which takes 32768 ns.
  const auto takes = [](bool apart, uint64_t busy_mb_per_s) {
    TestProgram t(2, 1);
    testing::connect_all(t, ChannelKind::memory);
    for (uint32_t r = 0; r < 2; ++r) {
      const uint32_t inbox = t.buffer(r, "inbox", 1, PacketFormat::LL16, 2);
      testing::add_op(t, r, 0, OpKind::put_packets, {testing::far(0, inbox, 0)},
                      {testing::local(kInput, 0)});
      testing::add_op(t, r, apart ? 1 : 0, OpKind::reduce_packets, {testing::local(kOutput, 0)},
                      {testing::local(kInput, 0), testing::local(inbox, 0)})
          .complete = true;
    }
    t.program.launch.threads = 512;
    Machine m = plain_machine(2);
    m.block_packet_round_ns = 3000;
    m.block_busy_mb_per_s = busy_mb_per_s;
    return timeline_of(t.program, m, 16384).alone_ns;
  };
  const uint64_t never = plain_machine(2).block_local_mb_per_s;
  // First packets: a round, and their way. Then 28768 ns of the sends are left, and three rounds:
  // the first look was in vain.
  CHECK(takes(true, 500) == Approx(4000 + 28768 + 9000).margin(1));
  // The sends take as long as what they send, after the round that loads the first of it.
  CHECK(takes(true, never) == Approx(3000 + 32768 + 1000));
  CHECK(takes(false, 500) == Approx(takes(false, never)));  // it has sent before it reads
}

TEST_CASE("rounds of LL8, of lines and of sentinels take more accesses than those of LL16") {
  const auto more = [](PacketFormat format) {
    const TestProgram t = testing::one_shot(2, 1, format);
    Machine m = plain_machine(2);
    const double none = timeline_of(t.program, m, 1024).alone_ns;
    m.block_access_ns = 100;
    return timeline_of(t.program, m, 1024).alone_ns - none;
  };
  CHECK(more(PacketFormat::LL16) == 0);
  CHECK(more(PacketFormat::LL8) == Approx(100));       // who sends, two stores
  CHECK(more(PacketFormat::sentinel) == Approx(100));  // who reads empties the slot
  CHECK(more(PacketFormat::LL128) == Approx(200));     // both agree
}

TEST_CASE("predictions are the same each time") {
  const TestProgram t = testing::one_shot(4, 3, PacketFormat::LL128);
  Machine m = plain_machine(4);
  m.step_step_ns = 77;
  const Timeline a = timeline_of(t.program, m, 100000), b = timeline_of(t.program, m, 100000);
  CHECK(a.alone_ns == b.alone_ns);
  CHECK(a.back_to_back_ns == b.back_to_back_ns);
  CHECK(a.records.size() == b.records.size());
}

TEST_CASE("a plan that waits for good is reported, not waited for") {
  TestProgram t = testing::exchange();
  testing::erase(t.program, 0, 5);  // its closing signal
  // Rank 1 takes the opening signal of the second call in its place.
  CHECK(refusal(t.program, plain_machine(2)) ==
        "plan-hangs: rank 0 does not get to the end of call 1: its thread blocks wait for signals "
        "or packets that do not come");
}

TEST_CASE("a machine that cannot run the plan") {
  const TestProgram t = testing::exchange();
  CHECK(refusal(t.program, plain_machine(1)) ==
        "machine-ranks: the plan has 2 ranks; the machine 'plain' has 1 GPUs");
  Machine apart = plain_machine(1);
  apart.nodes = 2;
  CHECK(refusal(t.program, apart) ==
        "machine-ranks: ranks 0 and 1 share memory in the plan, and are on two nodes of the "
        "machine 'plain' (1 GPU each)");
}

TEST_CASE("a call without data takes no longer than one with a little") {
  TestProgram t(1, 1);
  testing::add_op(t, 0, 0, OpKind::copy, {testing::local(kOutput, 0)}, {testing::local(kInput, 0)});
  Machine machine = plain_machine(1);
  machine.block_first_ns = 700;
  CHECK(timeline_of(t.program, machine, 0).alone_ns == 0);
  CHECK(timeline_of(t.program, machine, 16).alone_ns >= 700);
}

}  // namespace mscclc::cost
