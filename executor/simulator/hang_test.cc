// The text of deadlock reports.
#include <catch2/catch.hpp>

#include "executor/simulator/run.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;
using Kind = OpKind;

std::string hang(const TestProgram& t, const RunSpec& spec = {.bytes = 64}) {
  Diagnostics diagnostics;
  const RunResult result = simulate(t.program, spec, diagnostics);
  CHECK(result.status == RunStatus::hung);
  return render_text(diagnostics, Sources{}, 100);
}

TEST_CASE("signal that no rank sends") {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  t.program.files = {"x.mscl"};
  Op& op = add_op(t, 0, 0, Kind::wait, {end_of(0)});
  t.located(op, t.site(0, 12, 5, {"p"}), {1});
  add_op(t, 1, 0, Kind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  CHECK(hang(t) ==
        "error: the plan hangs: 1 of 2 thread blocks wait for something that never comes\n"
        "x.mscl:12:5: note: rank 0, tb 0: 'wait ch[1]' (p = 1) waits for signal 1 at 'ch[1]'; 0 "
        "came; rank 1 should send it from 'ch[0]', but no op does\n");
}

TEST_CASE("two ranks that wait for each other") {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  const uint32_t s = t.semaphore(1, "ready", {3});
  add_op(t, 0, 0, Kind::wait, {end_of(0)});
  add_op(t, 0, 0, Kind::signal, {end_of(0)});
  add_op(t, 1, 0, Kind::wait, {end_of(0)});
  add_op(t, 1, 0, Kind::release, {id(s)});
  add_op(t, 1, 0, Kind::signal, {end_of(0)});
  add_op(t, 1, 1, Kind::acquire, {id(s)});
  CHECK(
      hang(t) ==
      "error: the plan hangs: 3 of 3 thread blocks wait for something that never comes\n"
      "note: rank 0, tb 0: 'wait ch[1]' waits for signal 1 at 'ch[1]'; 0 came; rank 1 should send "
      "it from 'ch[0]': tb 0 of rank 1, which waits at 'wait ch[0]'\n"
      "note: rank 1, tb 0: 'wait ch[0]' waits for signal 1 at 'ch[0]'; 0 came; rank 0 should send "
      "it from 'ch[1]': tb 0 of rank 0, which waits at 'wait ch[1]'\n"
      "note: rank 1, tb 1: 'acquire ready[3]' waits for 'ready[3]', which is 0; it is released by "
      "tb 0 of rank 1, which waits at 'wait ch[0]'\n");
}

TEST_CASE("two blocks that wait for one signal") {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  add_op(t, 0, 0, Kind::wait, {end_of(0)});
  add_op(t, 0, 1, Kind::wait, {end_of(0)});
  add_op(t, 1, 0, Kind::signal, {end_of(0)});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const bool adversarial : {false, true}) {
      RunSpec spec{.bytes = 64, .schedule_seed = seed};
      if (adversarial) spec.adversary = Adversary{};
      CHECK(hang(t, spec).find("1 of 3 thread blocks") != std::string::npos);
    }
  }
}

TEST_CASE("barrier that a block does not reach") {
  TestProgram t(1, 1);
  const uint32_t s = t.semaphore(0, "never", {});
  add_op(t, 0, 0, Kind::barrier, {id(0), id(1), id(2)});
  add_op(t, 0, 1, Kind::barrier, {id(0), id(1), id(2)});
  add_op(t, 0, 2, Kind::acquire, {id(s)});
  add_op(t, 0, 2, Kind::barrier, {id(0), id(1), id(2)});
  CHECK(hang(t) ==
        "error: the plan hangs: 3 of 3 thread blocks wait for something that never comes\n"
        "note: rank 0, tb 0: 'barrier 0..3' waits for tb 2 of rank 0, which waits at 'acquire "
        "never'\n"
        "note: rank 0, tb 1: 'barrier 0..3' waits for tb 2 of rank 0, which waits at 'acquire "
        "never'\n"
        "note: rank 0, tb 2: 'acquire never' waits for 'never', which is 0; no op releases it\n");
}

TEST_CASE("packets that are not written") {
  for (const PacketFormat format : {PacketFormat::LL16, PacketFormat::sentinel}) {
    TestProgram t(2, 1);
    connect_all(t, ChannelKind::memory);
    const uint32_t inbox = t.buffer(0, "inbox", 3, format, 2);
    t.buffer(1, "inbox", 3, format, 2);
    const uint32_t s = t.semaphore(1, "gate", {});
    add_op(t, 0, 0, Kind::unpack_packets, {local(kOutput, 0)}, {local(inbox, 2)});
    add_op(t, 1, 0, Kind::acquire, {id(s)});
    add_op(t, 1, 0, Kind::put_packets, {far(0, inbox, 2)}, {local(kInput, 0)});
    const std::string seen =
        format == PacketFormat::sentinel ? "which is empty" : "flag 1; it holds flag 0";
    CHECK(hang(t) ==
          "error: the plan hangs: 2 of 2 thread blocks wait for something that never comes\n"
          "note: rank 0, tb 0: 'unpack_packets output[0] <- inbox[2]' waits for packet 0 of "
          "'inbox[2]', " +
              seen +
              "; written by tb 0 of rank 1, which waits at 'acquire gate'\n"
              "note: rank 1, tb 0: 'acquire gate' waits for 'gate', which is 0; no op releases "
              "it\n");
  }
}

TEST_CASE("a second call that lacks a signal") {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  t.program.contract.kind = CollectiveKind::custom;
  t.program.contract.input = t.program.contract.output = {1};
  const uint32_t s = t.semaphore(1, "once", {}, 1);
  add_op(t, 0, 0, Kind::wait, {end_of(0)});
  add_op(t, 1, 0, Kind::acquire, {id(s)});
  add_op(t, 1, 0, Kind::signal, {end_of(0)});
  CHECK(hang(t, {.bytes = 64, .iterations = 3, .schedule_seed = 4}) ==
        "error: the plan hangs: 2 of 2 thread blocks wait for something that never comes\n"
        "note: rank 0, tb 0, call 1: 'wait ch[1]' waits for signal 2 at 'ch[1]'; 1 came; rank 1 "
        "should send it from 'ch[0]': tb 0 of rank 1, which waits at 'acquire once'\n"
        "note: rank 1, tb 0, call 1: 'acquire once' waits for 'once', which is 0; no op releases "
        "it\n");
}

TEST_CASE("many waiting blocks are counted") {
  TestProgram t(1, 1);
  const uint32_t s = t.semaphore(0, "never", {});
  for (uint32_t b = 0; b < 20; ++b) add_op(t, 0, b, Kind::acquire, {id(s)});
  const std::string text = hang(t);
  CHECK(text.find("tb 15: ") != std::string::npos);
  CHECK(text.find("tb 16: ") == std::string::npos);
  CHECK(text.find("note: and 4 more thread blocks\n") != std::string::npos);
}

TEST_CASE("after a hang the runner still runs") {
  TestProgram t = one_shot(2, 1, PacketFormat::LL16);
  t.program.ranks[0].ops.erase(t.program.ranks[0].ops.begin());  // rank 0 sends nothing
  Simulator runner(t.program);
  for (int i = 0; i < 2; ++i) {
    Diagnostics diagnostics;
    CHECK(runner.run({.bytes = 256, .iterations = 2}, diagnostics).status == RunStatus::hung);
  }
}

}  // namespace
}  // namespace mscclc
