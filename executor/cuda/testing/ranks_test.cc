// The CUDA machine runs every op as the simulator does. Needs a GPU; without one it says so.
// The ranks are on one GPU, in one launch.
#include "executor/cuda/testing/ranks.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <span>

#include "executor/simulator/check.h"
#include "executor/testing/op_plans.h"
#include "executor/testing/test_plans.h"
#include "ir/support/sanitized.h"

namespace mscclc::cuda {
namespace {

using namespace testing;

std::string text_of(const Diagnostics& d) { return render_text(d, Sources{}, 100); }

/// Inputs and outputs lie in the simulator for filling and checking, and travel.
void move_all(CudaRanks& gpu, const Cluster& cluster, bool to_gpu, Diagnostics& diagnostics) {
  for (uint32_t r = 0; r < cluster.program().ranks.size(); ++r) {
    for (const uint32_t b : {kOutput, kInput}) {  // in place the input may lie in the output
      if (cluster.bytes(r, b) == 0) continue;
      REQUIRE((to_gpu ? gpu.write(r, b, cluster.data(r, b), diagnostics)
                      : gpu.read(r, b, cluster.data(r, b), diagnostics)));
    }
  }
}

using Options = CudaRanks::Options;

void run_calls(CudaRanks& gpu, Cluster& cluster, Call call, const Options& options,
               uint32_t calls) {
  Diagnostics diagnostics;
  const Contract& contract = cluster.program().contract;
  bool ready = check_call(cluster.program(), call, diagnostics) &&
               cluster.prepare(call, options.in_place, false, diagnostics) &&
               gpu.prepare(call, options, diagnostics);
  INFO(text_of(diagnostics));
  REQUIRE(ready);
  const TestValues values(call.dtype, call.accumulate,
                          contract.reduces() ? call.reduce : ReduceOp::call, contract.ranks);
  CollectiveCheck check(cluster, values);
  for (uint64_t i = 0; i < calls; ++i) {
    for (uint32_t r = 0; r < contract.ranks; ++r) check.before(r, i);
    move_all(gpu, cluster, true, diagnostics);
    const bool ended = gpu.run(diagnostics);
    INFO(text_of(diagnostics));
    REQUIRE(ended);
    move_all(gpu, cluster, false, diagnostics);
    for (uint32_t r = 0; r < contract.ranks; ++r) check.after(r, i);
  }
  check.report(diagnostics);
  INFO(text_of(diagnostics));
  REQUIRE(check.wrong() == 0);
}

constexpr ReduceOp kReductions[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod,
                                    ReduceOp::avg};

/// All sizes; with a sanitizer, which makes these tests six times slower, the first two.
std::span<const uint64_t> tried(std::span<const uint64_t> sizes) {
  return sizes.first(if_sanitized<size_t>(2, sizes.size()));
}
constexpr uint64_t kElements[] = {17, 1001, 0, 1};
constexpr uint64_t kGranules[] = {5, 100, 3, 48, 3001};
constexpr uint64_t kMaxElements[] = {5, 30011, 400009};

bool no_gpu() {
  if (CudaRanks::available()) return false;
  std::puts("no GPU here: nothing is tested");
  return true;
}

/// Is everything tried? On fibers of the host, which take many times as long as a GPU, plans take
/// types and reductions in turn; with --config=thorough all have all.
bool tries_all() { return kThorough || CudaRanks::slowness() == 1; }

/// A plan on the GPU and the simulator.
struct Pair {
  explicit Pair(const Program& program) : gpu(program), cluster(program) {
    Diagnostics diagnostics;
    REQUIRE(gpu.build(diagnostics));
    REQUIRE(cluster.build(diagnostics));
  }
  Call call(uint64_t elements, Dtype dtype, ReduceOp op = ReduceOp::sum) const {
    const DtypeInfo& type = info(dtype);
    return {.part_bytes = Chunking::part_for_message(cluster.program().contract,
                                                     elements * type.bytes, type.bytes),
            .dtype = dtype,
            .accumulate = type.accumulate,
            .reduce = op};
  }
  CudaRanks gpu;
  Cluster cluster;
};

/// Calls fn(plan, format, pair) for every op plan in every format.
template <class Fn>
void for_each_plan(Fn fn) {
  for (const OpPlan& plan : op_plans()) {
    for (const PacketFormat format : formats_of(plan)) {
      const TestProgram t = plan.build(format);
      Pair pair(t.program);
      fn(plan, format, pair);
    }
  }
}

bool carries(PacketFormat format, const DtypeInfo& type) {
  return !is_sentinel(format) || type.kind == DtypeKind::kFloat;
}

TEST_CASE("every op, type and reduction on the GPU") {
  if (no_gpu()) return;
  for_each_plan([](const OpPlan& plan, PacketFormat format, Pair& pair) {
    uint32_t turn = 0;
    for (const DtypeInfo& type : dtype_table()) {
      if (!carries(format, type)) continue;
      for (const ReduceOp op : kReductions) {
        if (op != ReduceOp::sum && !pair.cluster.program().contract.reduces()) continue;
        if (!tries_all() && op != ReduceOp::sum && op != kReductions[turn % 5]) continue;
        for (const uint64_t elements : tried(kElements)) {
          INFO(plan.name << ' ' << name(format) << ' ' << type.name << ' ' << name(op) << ' '
                         << elements);
          // The ways to get a program take turns.
          const Options options{.carried = turn++ % 2 == 0};
          run_calls(pair.gpu, pair.cluster, pair.call(elements, type.dtype, op), options, 3);
        }
      }
    }
  });
}

/// Sizes that are cut evenly, and with a granule more for the first blocks.
TEST_CASE("short programs on the GPU") {
  if (no_gpu()) return;
  std::vector<TestProgram> plans;
  for (const PacketFormatInfo& format : packet_formats()) {
    for (const uint32_t ranks : {2u, 4u}) plans.push_back(one_shot(ranks, 3, format.format));
    if (!is_sentinel(format.format)) {  // a root's copy is not in packets
      plans.push_back(broadcast_of_packets(2, 3, format.format));
      plans.push_back(broadcast_of_packets(4, 3, format.format));
    }
    plans.push_back(exchange_of_packets(3, format.format, true));
    plans.push_back(exchange_of_packets(3, format.format, false));
  }
  uint32_t turn = 0;
  for (const TestProgram& t : plans) {
    Pair pair(t.program);
    for (const DtypeInfo& type : dtype_table()) {
      const PacketFormat format = t.program.ranks[0].buffers[kFirstScratch].packets;
      if (!carries(format, type) || type.bytes > 4) continue;
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
        if (op != ReduceOp::sum && !t.program.contract.reduces()) continue;
        for (const uint64_t granules : tried(kGranules)) {
          if (++turn % 3 != 0 && !tries_all()) continue;
          INFO(name(format) << ' ' << type.name << ' ' << name(op) << ' ' << granules);
          const Options options{.in_short = true};
          run_calls(pair.gpu, pair.cluster, pair.call(granules * 16 / type.bytes, type.dtype, op),
                    options, 3);
          CHECK(pair.gpu.in_short() == pair.gpu.has_fast_kernel());
        }
      }
    }
  }
}

TEST_CASE("every op by short programs, where it has them, on the GPU") {
  if (no_gpu()) return;
  uint32_t in_short = 0;
  for_each_plan([&](const OpPlan& plan, PacketFormat format, Pair& pair) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i32}) {
      if (!carries(format, info(dtype))) continue;
      INFO(plan.name << ' ' << name(format) << ' ' << info(dtype).name);
      run_calls(pair.gpu, pair.cluster, pair.call(8192, dtype), {.in_short = true}, 3);
      in_short += pair.gpu.in_short();
    }
  });
  CHECK(in_short > 0);
}

TEST_CASE("a packet that does not come to a short program is reported") {
  if (no_gpu()) return;
  const TestProgram t = one_shot(2, 2, PacketFormat::LL16);
  Pair pair(t.program);
  Diagnostics diagnostics;
  pair.gpu.set_patience(100'000'000);
  REQUIRE(
      pair.gpu.prepare(pair.call(1024, Dtype::f32), {.in_short = true, .silent = 1}, diagnostics));
  REQUIRE(pair.gpu.in_short());
  CHECK(!pair.gpu.run(diagnostics));
  for (const uint32_t block : {0u, 1u}) {
    const device::Fault fault = pair.gpu.fault(0, block);
    CHECK(fault.what == device::WaitFor::packet);
    CHECK(fault.expected == 1);
    CHECK(fault.seen == 0);
    CHECK(t.program.ranks[0].ops[fault.op].kind == OpKind::reduce_packets);
    CHECK(t.program.ranks[0].ops[fault.op].block == block);
  }
}

TEST_CASE("a signal that does not come to a short program is reported") {
  if (no_gpu()) return;
  const TestProgram t = broadcast_of_packets(2, 2, PacketFormat::LL16);
  Pair pair(t.program);
  Diagnostics diagnostics;
  pair.gpu.set_patience(100'000'000);
  REQUIRE(
      pair.gpu.prepare(pair.call(1024, Dtype::f32), {.in_short = true, .silent = 1}, diagnostics));
  REQUIRE(pair.gpu.in_short());
  CHECK(!pair.gpu.run(diagnostics));
  const device::Fault fault = pair.gpu.fault(0, 2);
  CHECK(fault.what == device::WaitFor::signal);
  CHECK(fault.expected == 1);
  CHECK(fault.seen == 0);
  CHECK(t.program.ranks[0].ops[fault.op].kind == OpKind::wait);
}

constexpr uint32_t kShifted = 1;  ///< every buffer elsewhere

/// Calls of several sizes up to a few MB, at even and odd addresses, alike at all ranks and not.
void run_places(const std::string& what, Pair& pair, Dtype dtype, bool in_place) {
  uint32_t turn = 0;
  for (const uint64_t most : tried(kMaxElements)) {
    const uint64_t elements = std::max<uint64_t>(5, most / CudaRanks::slowness() | 1);
    for (const uint32_t offset : {0u, std::max(4u, info(dtype).bytes), kShifted}) {
      INFO(what << ' ' << info(dtype).name << ' ' << elements << (in_place ? " in place" : "")
                << " at " << offset);
      const bool shifted = offset == kShifted;
      const Options options{in_place, shifted, shifted ? 0 : offset, turn++ % 2 == 0};
      run_calls(pair.gpu, pair.cluster, pair.call(elements, dtype), options, 2);
    }
  }
}

TEST_CASE("every op at odd addresses on the GPU") {
  if (no_gpu()) return;
  uint32_t turn = 0;
  for_each_plan([&](const OpPlan& plan, PacketFormat format, Pair& pair) {
    for (const Dtype dtype :
         {Dtype::f32, Dtype::bf16, Dtype::e4m3, Dtype::e5m2, Dtype::i32, Dtype::f64}) {
      if (!carries(format, info(dtype)) || (++turn % 4 != 0 && !tries_all())) continue;
      run_places(plan.name + " " + std::string(name(format)), pair, dtype, false);
    }
  });
}

TEST_CASE("whole collectives, in place and not, on the GPU") {
  if (no_gpu()) return;
  uint32_t turn = 0;
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::e5m2, Dtype::f64}) {
    for (const bool in_place : {false, true}) {
      for (const PacketFormatInfo& row : packet_formats()) {
        if (++turn % 3 != 0 && !tries_all()) continue;
        const TestProgram t = one_shot(7, 3, row.format);
        Pair pair(t.program);
        run_places("one-shot " + std::string(row.name), pair, dtype, in_place);
      }
      const TestProgram t = with_syncs(two_shot(4));
      Pair pair(t.program);
      run_places("two-shot", pair, dtype, in_place);
    }
  }
}

TEST_CASE("sums that ports hand on") {
  if (no_gpu()) return;
  for (const PacketFormat format :
       {PacketFormat::LL16, PacketFormat::LL128, PacketFormat::sentinel}) {
    const TestProgram t = with_syncs(two_shot_by_ports(4, format));
    Pair pair(t.program);
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i32}) {
      if (!carries(format, info(dtype))) continue;
      run_places("two-shot by ports " + std::string(name(format)), pair, dtype, false);
      Diagnostics diagnostics;
      REQUIRE(pair.gpu.prepare(pair.call(4096, dtype), {}, diagnostics));
      CHECK(pair.gpu.has_fast_kernel() == (format != PacketFormat::LL16));
    }
  }
}

TEST_CASE("every accumulation type on the GPU") {
  if (no_gpu()) return;
  for_each_plan([](const OpPlan& plan, PacketFormat format, Pair& pair) {
    if (!pair.cluster.program().contract.reduces()) return;
    for (const DtypeInfo& type : dtype_table()) {
      if (!carries(format, type)) continue;
      for (const DtypeInfo& sums : dtype_table()) {
        if (!can_accumulate(type.dtype, sums.dtype)) continue;
        INFO(plan.name << ' ' << name(format) << ' ' << type.name << " in " << sums.name);
        Call call = pair.call(1001, type.dtype);
        call.accumulate = sums.dtype;
        run_calls(pair.gpu, pair.cluster, call, {}, 1);
      }
    }
  });
}

TEST_CASE("common sums have fast kernels, wherever words lie") {
  if (no_gpu()) return;
  for (const PacketFormat format :
       {PacketFormat::LL16, PacketFormat::LL128, PacketFormat::sentinel, PacketFormat::none}) {
    const TestProgram t =
        format == PacketFormat::none ? with_syncs(two_shot(4)) : one_shot(4, 2, format);
    Pair pair(t.program);
    for (const Dtype dtype :
         {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2, Dtype::i32}) {
      if (!carries(format, info(dtype))) continue;
      for (const uint32_t offset : {0, 4, 8, 12, 2}) {
        INFO(name(format) << ' ' << info(dtype).name << " at " << offset);
        Diagnostics diagnostics;
        const Call call = pair.call(4096, dtype);
        REQUIRE(pair.gpu.prepare(call, {.offset = offset}, diagnostics));
        CHECK(pair.gpu.has_fast_kernel() == (offset % 4 == 0));
      }
    }
  }
}

// For tools/gpu_check.sh, which asks whether compute-sanitizer sees it: not run unless named.
TEST_CASE("a plan that reads and writes beyond its buffers", "[.planted]") {
  if (no_gpu()) return;
  const TestProgram t = one_shot(4, 2, PacketFormat::LL16);
  Pair pair(t.program);
  Diagnostics diagnostics;
  REQUIRE(pair.gpu.prepare(pair.call(1001, Dtype::f32), {.offset = 1u << 20}, diagnostics));
  (void)pair.gpu.run(diagnostics);  // the sanitizer says what it thinks of it
}

}  // namespace
}  // namespace mscclc::cuda
