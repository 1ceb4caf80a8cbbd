// Plans that add up floats, on data whose sums are rounded, overflow, or are no numbers: every bit
// of the output must be what the simulator gives for the same plan, which adds in the same
// order. (plans.cc asks for exact results; there the order does not matter.)
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <random>

#include "executor/simulator/cluster.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/stage/graphs.h"
#include "tests/orders/row_batches.h"

namespace mscclc::testing {
namespace {

constexpr uint64_t kMaxBytes = 1 << 16;

/// Floats whose sums are rounded, among arbitrary bits: some overflow, or are no numbers.
std::vector<uint8_t> random_input(uint64_t bytes, uint32_t element, uint64_t seed) {
  std::vector<uint8_t> data = random_floats(bytes / element, element, seed);
  std::mt19937_64 random(~seed);
  for (uint64_t i = 0; i < data.size(); i += element) {
    const uint64_t bits = random();
    if (random() % 16 == 0) std::memcpy(data.data() + i, &bits, element);
  }
  data.resize(bytes);
  return data;
}

bool is_nan(Dtype dtype, const uint8_t* at) {
  return element_text(dtype, at).find("nan") != std::string::npos;
}

/// "" if all elements have the same bits; what is no number may be written in any way.
std::string difference(Dtype dtype, const uint8_t* host, const uint8_t* gpu, uint64_t bytes) {
  const uint32_t element = info(dtype).bytes;
  for (uint64_t i = 0; i < bytes; i += element) {
    if (std::memcmp(host + i, gpu + i, element) == 0) continue;
    if (is_nan(dtype, host + i) && is_nan(dtype, gpu + i)) continue;
    return fmt::format("element {}: the host gives {}, the GPU {}", i / element,
                       element_text(dtype, host + i), element_text(dtype, gpu + i));
  }
  return "";
}

/// Gives every rank of the simulator its input.
class Inputs final : public CallHooks {
 public:
  Inputs(const Cluster& cluster, uint64_t seed) : cluster_(cluster), seed_(seed) {}
  std::vector<uint8_t> of(uint32_t rank) const {
    return random_input(cluster_.bytes(rank, kInput), info(cluster_.call().dtype).bytes,
                        seed_ * 64 + rank);
  }
  void before(uint32_t rank, uint64_t) override {
    const std::vector<uint8_t> data = of(rank);
    if (!data.empty()) std::memcpy(cluster_.data(rank, kInput), data.data(), data.size());
  }
  void after(uint32_t, uint64_t) override {}

 private:
  const Cluster& cluster_;
  const uint64_t seed_;
};

/// Bytes of the output that the collective promises: the rest may be anything.
void clear_rest(const Contract& contract, const Chunking& chunking, uint32_t rank,
                std::vector<uint8_t>& output) {
  std::vector<uint8_t> kept(output.size());
  Promise promise;
  for (uint32_t c = 0; c < contract.shape(Side::output, rank).chunks(); ++c) {
    if (!contract.promise(rank, c, promise)) continue;
    const uint64_t offset = chunking.offset(Side::output, rank, c);
    const uint64_t length = chunking.length(Side::output, rank, c);
    if (length > 0) std::memcpy(kept.data() + offset, output.data() + offset, length);
  }
  output = std::move(kept);
}

/// One call on GPU and host; "" if they agree at this rank.
std::string compare(Communicator& communicator, LoadedCase& loaded, Cluster& host, Graphs* graphs,
                    const RunSpec& spec, StreamHandle stream, uint64_t seed) {
  Diagnostics diagnostics;
  const Program& plan = *loaded.of().plan;
  const uint32_t rank = communicator.rank();
  const DtypeInfo& type = info(spec.dtype);
  Call call{.part_bytes = Chunking::part_for_message(plan.contract, spec.bytes, type.bytes),
            .dtype = spec.dtype,
            .accumulate = type.accumulate,
            .reduce = spec.op};
  const auto checked = loaded.call_beside(spec, diagnostics);
  if (checked == nullptr || !check_call(plan, call, diagnostics) ||
      !host.prepare(call, spec.in_place.value_or(false), false, diagnostics)) {
    return text(diagnostics);
  }
  Inputs inputs(host, seed);
  const std::vector<uint8_t> own = inputs.of(rank);
  std::unique_ptr<Graph> graph;
  if (graphs != nullptr) {
    graph = graphs->capture(
        stream, [&](Diagnostics& problems) { return checked->launch(stream, problems); },
        diagnostics);
    if (graph == nullptr) return text(diagnostics);
  }
  if (!host.run(1, 0, inputs, diagnostics) || !checked->write_input(own.data(), diagnostics) ||
      !(graph ? graph->launch(stream, diagnostics) : checked->launch(stream, diagnostics)) ||
      !communicator.synchronize(stream, diagnostics)) {
    return text(diagnostics);
  }
  std::vector<uint8_t> gpu(checked->bytes(kOutput));
  if (!checked->read_output(gpu.data(), diagnostics)) return text(diagnostics);
  if (gpu.size() != host.bytes(rank, kOutput)) return "the outputs differ in size";
  std::vector<uint8_t> expected(host.data(rank, kOutput), host.data(rank, kOutput) + gpu.size());
  const Chunking chunking(plan.contract, call.part_bytes, plan.launch.align);
  clear_rest(plan.contract, chunking, rank, gpu);
  clear_rest(plan.contract, chunking, rank, expected);
  return difference(spec.dtype, expected.data(), gpu.data(), gpu.size());
}

std::string run_case(const StageOptions& options, Communicator& communicator, const Case& c) {
  Diagnostics diagnostics;
  const Stream stream(communicator.device(), diagnostics);
  Cluster host(*c.plan);
  const auto graphs = make_graphs(options, communicator, diagnostics);
  if (stream.get() == nullptr || graphs == nullptr || !host.build(diagnostics)) {
    return text(diagnostics);
  }
  uint64_t seed = options.seed, calls = 0;
  for (const uint32_t width : c.widths()) {
    const std::vector<Dtype> dtypes = c.dtypes_of(width);
    const auto loaded = LoadedCase::load(
        communicator, c, {.max_bytes = kMaxBytes, .dtype = dtypes.front()}, diagnostics);
    if (loaded == nullptr) return text(diagnostics);
    for (const Dtype dtype : dtypes) {
      if (info(dtype).kind != DtypeKind::kFloat) continue;
      for (const ReduceOp op : c.ops) {
        for (const RunSize& size : {RunSize{257, 0}, RunSize{0, 4096}, RunSize{0, kMaxBytes}}) {
          const RunSpec spec{.bytes = c.bytes(size, dtype),
                             .dtype = dtype,
                             .op = op,
                             .in_place = c.in_place.back()};
          const std::string fault =
              compare(communicator, *loaded, host, options.graph ? graphs.get() : nullptr, spec,
                      stream.get(), ++seed);
          if (!fault.empty()) return fmt::format("{}: {}", mscclc::text(spec), fault);
          ++calls;
        }
      }
    }
  }
  if (communicator.rank() == 0) fmt::print("{}: {} calls, the same bits\n", c.name, calls);
  std::fflush(stdout);
  return "";
}

}  // namespace

bool check_bits(const StageOptions& options) {
  std::vector<Case> cases = library_cases(options);
  std::erase_if(cases, [](const Case& c) { return !c.plan->contract.reduces(); });
  const Tally tally = run_cases(options, cases, [&](Communicator& communicator, const Case& c) {
    return run_case(options, communicator, c);
  });
  fmt::print("bits at {}, {}: {} plans right, {} wrong{}\n", text(options),
             options.graph ? "in graphs" : "eager", tally.right, tally.wrong, left_out(tally.late));
  return tally.wrong == 0 && tally.right > 0;
}

}  // namespace mscclc::testing
