// How a block flushes ports: what it asks of its proxy, and for what it waits.
#include "runtime/devices/host/process_machine.h"

#include <catch2/catch.hpp>
#include <optional>

#include "executor/port_slots.h"
#include "executor/stamps.h"

namespace mscclc {
namespace {

using device::PortRequest;
using device::PortWhat;

constexpr uint32_t kChannels = 3;
constexpr uint64_t kBits = 3;

/// A block whose program is one flush of three ports, and what is between it and a proxy.
struct Flusher {
  /// `before`: requests that have been posted and handled.
  explicit Flusher(uint64_t before, uint64_t patience = 0) : claimed(before), handled(before) {
    program.header.steps = 1;
    program.header.targets = kChannels;
    program.step.kind = device::StepKind::flush;
    program.step.flags = device::kPosts;
    program.step.count = kChannels;
    program.step.source = 7;
    for (uint32_t c = 0; c < kChannels; ++c) program.targets[c].index = c;
    rank.queue = {slots, kBits, &claimed, &seen, flushed, &handled};
    rank.faults = &fault;
    rank.abort = &abort;
    plan.context = &rank;
    plan.calls = &calls;
    plan.programs = reinterpret_cast<const uint8_t*>(&program);
    plan.program_bytes = sizeof program;
    plan.patience = patience;
    machine.emplace(plan, 0, *fiber);
    fiber->start([](void* self) { static_cast<Flusher*>(self)->machine->run(); }, this);
  }
  /// Lets the block go on until it waits; true: it has ended.
  bool ends() {
    fiber->resume();
    return fiber->ended();
  }

  struct {
    device::StepHeader header;
    device::Step step;
    device::StepTarget targets[kChannels];
  } program = {};
  device::PortSlot slots[1 << kBits] = {};
  uint64_t claimed, seen = 0, flushed[kChannels] = {}, handled, calls = 0;
  uint32_t abort = 0;
  device::Fault fault{};
  device::RankContext rank{};
  device::LaunchPlan plan;
  FiberPool fibers;
  Fiber* const fiber = fibers.take();
  std::optional<ProcessMachine> machine;
};

TEST_CASE("an op asks for all of its flushes before it waits for one") {
  Flusher block(0);
  CHECK(!block.ends());
  for (uint32_t c = 0; c < kChannels; ++c) {
    INFO("channel " << c);
    PortRequest request;
    REQUIRE(read_request(block.rank.queue, c, request));
    CHECK(request.what == PortWhat::flush);
    CHECK(request.channel == c);
  }
}

TEST_CASE("a flush has come when all channels report it, or a later one") {
  Flusher block(5);
  CHECK(!block.ends());
  block.handled = 8;  // copies have only begun
  CHECK(!block.ends());
  for (uint64_t& count : block.flushed) count = 5;  // flushes before this one
  CHECK(!block.ends());
  block.flushed[0] = 6;
  block.flushed[2] = 8;
  CHECK(!block.ends());
  block.flushed[1] = 100;  // another block's
  CHECK(block.ends());
  CHECK(block.calls == 1);
}

TEST_CASE("a flush that does not come is reported with its channel") {
  Flusher block(5, 1);
  block.flushed[0] = 6;
  block.flushed[1] = 2;
  for (int i = 0; i < 1000 && !block.machine->gave_up(); ++i) REQUIRE(!block.ends());
  REQUIRE(block.machine->gave_up());
  CHECK(block.fault.what == device::WaitFor::flush);
  CHECK(block.fault.index == 1);
  CHECK(block.fault.expected == 6);
  CHECK(block.fault.seen == 2);
  CHECK(block.abort == 1);
}

TEST_CASE("a block that begins after calls were given up does nothing, and says so") {
  Flusher block(0);
  block.abort = 1;
  CHECK(!block.ends());
  CHECK(block.machine->gave_up());
  CHECK(block.fault.what == device::WaitFor::skipped);
  CHECK(block.claimed == 0);
}

TEST_CASE("a block stamps when it began each step, if it is asked to") {
  uint64_t row[device::kStampHead + 1] = {~0ull, ~0ull, ~0ull, ~0ull, ~0ull};
  Flusher block(0);
  block.plan.stamps = row;
  block.plan.stamp_words = device::kStampHead + 1;
  block.machine.emplace(block.plan, 0, *block.fiber);
  CHECK(!block.ends());
  CHECK(row[device::kStampsDue] == 1);
  CHECK(row[device::kStampsEnded] == 0);
  for (uint64_t& count : block.flushed) count = 3;
  block.handled = 3;
  CHECK(block.ends());
  const device::BlockStamp stamp = device::stamp_of_word(row[device::kStampHead]);
  CHECK(stamp.what == static_cast<uint32_t>(device::StepKind::flush));
  CHECK(stamp.source == 7);
  CHECK(row[device::kStampsBegan] + row[device::kStampsTicks] == row[device::kStampsEnded]);
  CHECK(stamp.ticks <= row[device::kStampsTicks]);
}

TEST_CASE("stamps that do not fit are counted") {
  uint64_t words[device::kStampHead + 1] = {};
  words[device::kStampHead] = 42;
  Flusher block(0);
  block.plan.stamps = words;
  block.plan.stamp_words = device::kStampHead;
  block.machine.emplace(block.plan, 0, *block.fiber);
  CHECK(!block.ends());
  CHECK(words[device::kStampsDue] == 1);
  CHECK(words[device::kStampHead] == 42);
}

}  // namespace
}  // namespace mscclc
