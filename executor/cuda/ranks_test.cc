// The CUDA machine runs every op as the host machine does. Needs a GPU; without one it says so.
// The ranks are on one GPU, in one launch.
#include "executor/cuda/ranks.h"

#include <catch2/catch.hpp>
#include <cstdio>

#include "executor/host/check.h"
#include "executor/host/op_plans.h"

namespace mscclc::cuda {
namespace {

using namespace testing;

std::string text_of(const Diagnostics& d) { return render_text(d, Sources{}, 100); }

/// Inputs and outputs lie on the host for filling and checking, and travel.
void move_all(CudaRanks& gpu, const Cluster& cluster, bool to_gpu, Diagnostics& diagnostics) {
  for (uint32_t r = 0; r < cluster.program().ranks.size(); ++r) {
    for (const uint32_t b : {kOutput, kInput}) {  // in place the input may lie in the output
      if (cluster.bytes(r, b) == 0) continue;
      REQUIRE((to_gpu ? gpu.write(r, b, cluster.data(r, b), diagnostics)
                      : gpu.read(r, b, cluster.data(r, b), diagnostics)));
    }
  }
}

void run_calls(CudaRanks& gpu, Cluster& cluster, Call call, bool in_place, uint32_t calls,
               CudaRanks::Place place = CudaRanks::Place::aligned) {
  Diagnostics diagnostics;
  const Contract& contract = cluster.program().contract;
  bool ready = check_call(cluster.program(), call, diagnostics) &&
               cluster.prepare(call, in_place, false, diagnostics) &&
               gpu.prepare(call, in_place, diagnostics, place);
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

bool no_gpu() {
  if (CudaRanks::available()) return false;
  std::puts("no GPU here: nothing is tested");
  return true;
}

/// A plan on GPU and host.
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

TEST_CASE("every op, type and reduction on the GPU") {
  if (no_gpu()) return;
  for (const OpPlan& plan : op_plans()) {
    for (const PacketFormat format : formats_of(plan)) {
      const TestProgram t = plan.build(format);
      Pair pair(t.program);
      for (const DtypeInfo& type : dtype_table()) {
        if (format == PacketFormat::sentinel && type.kind != DtypeKind::kFloat) continue;
        for (const ReduceOp op : kReductions) {
          if (op != ReduceOp::sum && !t.program.contract.reduces()) continue;
          for (const uint64_t elements : {0, 1, 17, 1001}) {
            INFO(plan.name << ' ' << name(format) << ' ' << type.name << ' ' << name(op) << ' '
                           << elements);
            run_calls(pair.gpu, pair.cluster, pair.call(elements, type.dtype, op), false, 3);
          }
        }
      }
    }
  }
}

TEST_CASE("every op at odd addresses and in place") {
  if (no_gpu()) return;
  for (const OpPlan& plan : op_plans()) {
    for (const PacketFormat format : formats_of(plan)) {
      const TestProgram t = plan.build(format);
      Pair pair(t.program);
      for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::e4m3, Dtype::f64}) {
        for (const uint64_t elements : {5, 30011, 400009}) {
          for (const bool in_place : {false, true}) {
            for (const auto place : {CudaRanks::Place::aligned, CudaRanks::Place::shifted}) {
              INFO(plan.name << ' ' << name(format) << ' ' << info(dtype).name << ' ' << elements
                             << (in_place ? " in place" : "")
                             << (place == CudaRanks::Place::shifted ? " shifted" : ""));
              run_calls(pair.gpu, pair.cluster, pair.call(elements, dtype), in_place, 2, place);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace mscclc::cuda
