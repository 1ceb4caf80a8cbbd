// What a plan that hangs leaves on the GPU: the kernel ends within the patience, and every block
// that waited says for what.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <thread>

#include "executor/cuda/testing/ranks.h"
#include "executor/testing/test_plans.h"

namespace mscclc::cuda {
namespace {

using namespace testing;
using device::Fault;
using device::WaitFor;
using Kind = OpKind;

constexpr uint64_t kPatience = 300'000'000;  // nanoseconds
constexpr Call kCall{.part_bytes = 4096};

struct Ended {
  bool ran;
  double seconds;
  std::string text;
};

/// One call of a plan.
Ended run(CudaRanks& gpu) {
  Diagnostics diagnostics;
  const uint64_t begin = CudaRanks::nanoseconds();
  const bool ran = gpu.run(diagnostics);
  const double took = 1e-9 * static_cast<double>(CudaRanks::nanoseconds() - begin);
  return {ran, took, render_text(diagnostics, Sources{}, 100)};
}

void prepare(CudaRanks& gpu, uint64_t patience) {
  Diagnostics diagnostics;
  gpu.set_patience(patience);
  const bool ready = gpu.build(diagnostics) && gpu.prepare(kCall, {}, diagnostics);
  INFO(render_text(diagnostics, Sources{}, 100));
  REQUIRE(ready);
}

void check_fault(const CudaRanks& gpu, uint32_t rank, uint32_t block, const Fault& expected) {
  const Fault seen = gpu.fault(rank, block);
  INFO("rank " << rank << ", block " << block);
  CHECK(static_cast<uint32_t>(seen.what) == static_cast<uint32_t>(expected.what));
  if (expected.what == WaitFor::packet) {
    CHECK(device::unit_of(seen) != 0);
  } else {
    CHECK(seen.index == expected.index);
  }
  CHECK(seen.op == expected.op);
  CHECK(seen.expected == expected.expected);
  CHECK(seen.seen == expected.seen);
}

/// Runs a plan that hangs, and checks that it ends in time.
void hang(CudaRanks& gpu) {
  prepare(gpu, kPatience);
  const Ended ended = run(gpu);
  INFO(ended.text);
  CHECK(!ended.ran);
  CHECK(ended.text.find("the plan hangs") != std::string::npos);
  CHECK(ended.seconds > 0.2);
  CHECK(ended.seconds < 2);
}

bool no_gpu_to_hang() {
  if (CudaRanks::available()) return false;
  std::puts("no GPU here: nothing is tested");
  return true;
}

TEST_CASE("a signal that no rank sends") {
  if (no_gpu_to_hang()) return;
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  // Threads that meet after the wait come out too, and what follows is not done.
  add_op(t, 0, 0, Kind::wait, {end_of(0)});
  add_op(t, 0, 0, Kind::sync, {});
  add_op(t, 0, 0, Kind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  add_op(t, 0, 0, Kind::sync, {});
  add_op(t, 0, 0, Kind::signal, {end_of(0)});
  // Its partner depends on it, and so gets no signal either.
  add_op(t, 1, 0, Kind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  add_op(t, 1, 0, Kind::wait, {end_of(0)});
  CudaRanks gpu(t.program);
  hang(gpu);
  check_fault(gpu, 0, 0, {WaitFor::signal, 0, 0, 0, 1, 0});
  check_fault(gpu, 1, 0, {WaitFor::signal, 0, 1, 0, 1, 0});
}

TEST_CASE("semaphores and barriers that others do not reach") {
  if (no_gpu_to_hang()) return;
  TestProgram t(1, 1);
  const uint32_t s = t.semaphore(0, "never", {});
  add_op(t, 0, 0, Kind::barrier, {id(0), id(1)});
  add_op(t, 0, 1, Kind::acquire, {id(s)});
  add_op(t, 0, 1, Kind::barrier, {id(0), id(1)});
  CudaRanks gpu(t.program);
  hang(gpu);
  check_fault(gpu, 0, 0, {WaitFor::barrier, 0, 0, 0, 2, 1});
  check_fault(gpu, 0, 1, {WaitFor::semaphore, 0, 1, 0, 1, 0});
}

TEST_CASE("packets that are not written") {
  if (no_gpu_to_hang()) return;
  for (const PacketFormat format :
       {PacketFormat::LL8, PacketFormat::LL16, PacketFormat::LL128, PacketFormat::sentinel}) {
    TestProgram t(2, 1);
    connect_all(t, ChannelKind::memory);
    const uint32_t inbox = t.buffer(0, "inbox", 1, format, 2);
    t.buffer(1, "inbox", 1, format, 2);
    const uint32_t s = t.semaphore(1, "gate", {});
    add_op(t, 0, 0, Kind::reduce_packets, {local(kOutput, 0)}, {local(kInput, 0), local(inbox, 0)});
    add_op(t, 0, 0, Kind::sync, {});
    add_op(t, 1, 0, Kind::acquire, {id(s)});
    add_op(t, 1, 0, Kind::sync, {});
    add_op(t, 1, 0, Kind::put_packets, {far(0, inbox, 0)}, {local(kInput, 0)});
    CudaRanks gpu(t.program);
    hang(gpu);
    const bool sentinel = format == PacketFormat::sentinel;
    check_fault(
        gpu, 0, 0,
        {WaitFor::packet, 0, 0, 0, sentinel ? 0x80000000u : 1u, sentinel ? 0x80000000u : 0u});
    check_fault(gpu, 1, 0, {WaitFor::semaphore, 0, 0, 0, 1, 0});
  }
}

TEST_CASE("a wait without end is ended by the host") {
  if (no_gpu_to_hang()) return;
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  add_op(t, 0, 0, Kind::wait, {end_of(0)});
  add_op(t, 1, 0, Kind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  CudaRanks gpu(t.program);
  prepare(gpu, 0);
  std::thread host([&gpu] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    gpu.abort();
  });
  const Ended ended = run(gpu);
  host.join();
  CHECK(!ended.ran);
  check_fault(gpu, 0, 0, {WaitFor::signal, 0, 0, 0, 1, 0});
}

TEST_CASE("after a hang the ranks can be prepared anew") {
  if (no_gpu_to_hang()) return;
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  const uint32_t s = t.semaphore(1, "once", {}, 1);
  add_op(t, 0, 0, Kind::wait, {end_of(0)});
  add_op(t, 1, 0, Kind::acquire, {id(s)});
  add_op(t, 1, 0, Kind::signal, {end_of(0)});
  CudaRanks gpu(t.program);
  prepare(gpu, kPatience);
  for (int i = 0; i < 2; ++i) {
    CHECK(run(gpu).ran);
    CHECK(!run(gpu).ran);  // the second call lacks the semaphore
    check_fault(gpu, 0, 0, {WaitFor::signal, 0, 0, 0, 2, 1});
    check_fault(gpu, 1, 0, {WaitFor::semaphore, 0, 0, 0, 1, 0});
    Diagnostics diagnostics;
    REQUIRE(gpu.prepare(kCall, {}, diagnostics));
  }
}

}  // namespace
}  // namespace mscclc::cuda
