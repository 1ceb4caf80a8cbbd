#include "executor/simulator/cluster.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

#include "executor/simulator/check.h"
#include "executor/simulator/run.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;
using Kind = OpKind;

/// Hooks made of functions.
class Hooks : public CallHooks {
 public:
  std::function<void(uint32_t, uint64_t)> on_before, on_after;
  void before(uint32_t rank, uint64_t call) override {
    if (on_before) on_before(rank, call);
  }
  void after(uint32_t rank, uint64_t call) override {
    if (on_after) on_after(rank, call);
  }
};

std::string text_of_cluster(const Diagnostics& d) { return render_text(d, Sources{}, 100); }

bool run_from(const Program& program, uint64_t first_call, uint64_t calls, uint64_t seed,
              Dtype dtype, uint64_t& wrong) {
  Cluster cluster(program);
  Diagnostics diagnostics;
  const Call call{.part_bytes = 1024, .dtype = dtype, .accumulate = info(dtype).accumulate};
  REQUIRE(cluster.build(diagnostics));
  REQUIRE(cluster.prepare(call, false, true, diagnostics));
  cluster.set_next_call(first_call);
  const TestValues values(dtype, call.accumulate, ReduceOp::sum, program.contract.ranks);
  CollectiveCheck check(cluster, values);
  const bool ended = cluster.run(calls, seed, check, diagnostics);
  wrong = check.wrong();
  INFO(text_of_cluster(diagnostics));
  CHECK(cluster.check_guards(diagnostics));
  CHECK(cluster.next_call() == first_call + calls);
  return ended;
}

TEST_CASE("packet flags and copies over many calls and round the end of 32 bits") {
  for (const PacketFormatInfo& row : packet_formats()) {
    for (const uint32_t copies : {2, 3}) {
      const TestProgram t = one_shot(3, 1, row.format, copies);
      for (const uint64_t first : {uint64_t{0}, uint64_t{0xfffffff8}, uint64_t{1} << 40}) {
        for (uint64_t seed = 0; seed < 6; ++seed) {
          uint64_t wrong = 0;
          CHECK(run_from(t.program, first, 20, seed, Dtype::f32, wrong));
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("one copy is too few for a one-shot allreduce, and some schedule shows it") {
  const TestProgram t = one_shot(3, 1, PacketFormat::LL16, 1);
  bool shown = false;
  for (uint64_t seed = 1; seed < 50 && !shown; ++seed) {
    uint64_t wrong = 0;
    shown = !run_from(t.program, 0, 10, seed, Dtype::f32, wrong) || wrong > 0;
  }
  CHECK(shown);
}

/// Rank 0 sends its input over a port; says so before the proxy has read it, unless it flushes.
TestProgram send_by_port(bool flush) {
  TestProgram t(2, 1);
  t.program.contract.kind = CollectiveKind::custom;
  t.program.contract.input = t.program.contract.output = {1};
  t.program.contract.promises = {{{1, 0}, false, {{0, 0}}}};
  connect_all(t, ChannelKind::port);
  add_op(t, 1, 0, Kind::signal, {end_of(0)});
  add_op(t, 0, 0, Kind::wait, {end_of(0)});
  add_op(t, 0, 0, Kind::put, {far(0, kOutput, 0)}, {local(kInput, 0)});
  add_op(t, 0, 0, Kind::signal, {end_of(0)});
  if (flush) add_op(t, 0, 0, Kind::flush, {end_of(0)});
  add_op(t, 1, 0, Kind::wait, {end_of(0)});
  return t;
}

TEST_CASE("a port reads its source late: without a flush the caller's next input may be sent") {
  for (const bool flush : {false, true}) {
    const TestProgram t = send_by_port(flush);
    Simulator runner(t.program);
    bool wrong = false;
    for (uint64_t seed = 0; seed < 30; ++seed) {
      Diagnostics diagnostics;
      const RunSpec spec{.bytes = 4096, .iterations = 3, .schedule_seed = seed};
      const bool this_wrong = runner.run(spec, diagnostics).status != RunStatus::right;
      wrong |= this_wrong;
      if (!this_wrong && flush) CHECK(diagnostics.all().empty());
      if (!this_wrong || flush) continue;
      CHECK(diagnostics.all().front().code == "source-in-flight");
      CHECK(diagnostics.all().front().message ==
            "rank 0, tb 0: 'put ch[1].output[0] <- input[0]' still reads the caller's buffer when "
            "the call returns; a flush is missing");
    }
    CHECK(wrong != flush);
  }
}

TEST_CASE("many puts wait for room in the proxy's queue") {
  TestProgram t = send_by_port(true);
  Program& p = t.program;
  const Op put = p.ranks[0].ops[1];
  p.ranks[0].ops.insert(p.ranks[0].ops.begin() + 1, 50, put);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Diagnostics diagnostics;
    const RunSpec spec{.bytes = 4096, .iterations = 3, .schedule_seed = seed};
    CHECK(simulate(p, spec, diagnostics).status == RunStatus::right);
  }
}

TEST_CASE("ranks may be several calls ahead of others") {
  TestProgram t(2, 1);
  for (uint32_t r = 0; r < 2; ++r) {
    add_op(t, r, 0, Kind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  }
  uint64_t most = 0;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    Cluster cluster(t.program);
    Diagnostics diagnostics;
    REQUIRE(cluster.build(diagnostics));
    REQUIRE(cluster.prepare({.part_bytes = 64}, false, true, diagnostics));
    Hooks hooks;
    uint64_t done[2] = {0, 0};
    hooks.on_after = [&](uint32_t rank, uint64_t call) {
      done[rank] = call + 1;
      most = std::max(most, done[0] > done[1] ? done[0] - done[1] : done[1] - done[0]);
    };
    CHECK(cluster.run(6, seed, hooks, diagnostics));
  }
  CHECK(most >= 3);
}

TEST_CASE("bytes written beside a buffer are found") {
  TestProgram t(1, 1);
  t.buffer(0, "stage", 1);
  add_op(t, 0, 0, Kind::sync, {});
  Cluster cluster(t.program);
  Diagnostics diagnostics;
  REQUIRE(cluster.build(diagnostics));
  REQUIRE(cluster.prepare({.part_bytes = 40}, false, true, diagnostics));
  Hooks hooks;
  hooks.on_after = [&](uint32_t, uint64_t) {
    cluster.data(0, kOutput)[40] = 1;
    cluster.data(0, kFirstScratch)[-1] = 1;
  };
  CHECK(cluster.run(1, 0, hooks, diagnostics));
  CHECK_FALSE(cluster.check_guards(diagnostics));
  CHECK(text_of_cluster(diagnostics) ==
        "error: rank 0: bytes after 'output' have been written\n"
        "error: rank 0: bytes before 'stage' have been written\n");
}

TEST_CASE("offsets beyond 4 GiB are reached, on memory of which little is touched") {
  constexpr uint32_t kChunks = 8192;
  constexpr uint64_t kChunk = 1 << 20;  // 8 GiB of input and output, 16 GiB of packets
  TestProgram t(1, kChunks);
  const uint32_t stage = t.buffer(0, "stage", kChunks);
  const uint32_t slots = t.buffer(0, "slots", kChunks, PacketFormat::LL16, 2);
  const uint32_t last = kChunks - 1;
  add_op(t, 0, 0, Kind::copy, {local(stage, last)}, {local(kInput, last)});
  add_op(t, 0, 0, Kind::copy_packets, {local(slots, last)}, {local(stage, last)});
  add_op(t, 0, 0, Kind::unpack_packets, {local(kOutput, last)}, {local(slots, last)});
  Cluster cluster(t.program);
  Diagnostics diagnostics;
  REQUIRE(cluster.build(diagnostics));
  REQUIRE(cluster.prepare({.part_bytes = kChunks * kChunk}, false, false, diagnostics));
  const uint64_t at = uint64_t{last} * kChunk;
  Hooks hooks;
  hooks.on_before = [&](uint32_t, uint64_t call) {
    std::memset(cluster.data(0, kInput) + at, static_cast<int>(call) + 1, kChunk);
  };
  hooks.on_after = [&](uint32_t, uint64_t call) {
    const uint8_t* out = cluster.data(0, kOutput) + at;
    CHECK(std::all_of(out, out + kChunk, [&](uint8_t b) { return b == call + 1; }));
  };
  CHECK(cluster.run(2, 0, hooks, diagnostics));
  CHECK(cluster.check_guards(diagnostics));
}

TEST_CASE("a runner changes size, type and place between runs") {
  const TestProgram t = one_shot(4, 3, PacketFormat::LL128);
  Simulator runner(t.program);
  uint64_t n = 0;
  for (const uint64_t bytes : {4096, 8, 100000, 0, 64, 99992, 4096}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::i8, Dtype::f64}) {
      for (const bool in_place : {false, true}) {
        Diagnostics diagnostics;
        const RunResult result = runner.run({.bytes = bytes,
                                             .dtype = dtype,
                                             .in_place = in_place,
                                             .iterations = 1 + static_cast<uint32_t>(n % 3),
                                             .schedule_seed = n % 5},
                                            diagnostics);
        ++n;
        INFO(text_of_cluster(diagnostics));
        CHECK(result.status == RunStatus::right);
        CHECK(result.in_place == in_place);
        CHECK(result.bytes == bytes);
      }
    }
  }
}

}  // namespace
}  // namespace mscclc
