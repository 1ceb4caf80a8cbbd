#include "runtime/rank_runner.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "executor/lower.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;

int64_t now() { return Clock::now().time_since_epoch().count(); }

/// A buffer of the caller: device memory, a part of it that calls use, and what it holds as the
/// host sees it.
struct CallerBuffer {
  std::unique_ptr<Memory> memory;
  std::unique_ptr<RegisteredBuffer> registered;
  uint64_t offset = 0;
  std::vector<uint8_t> mirror;
  uint8_t* device() const { return memory->data() + offset; }
};

}  // namespace

struct RankRunner::State {
  State(Communicator& communicator, std::shared_ptr<const Program> plan,
        const RunnerOptions& options)
      : communicator(communicator), plan(std::move(plan)), options(options) {}
  ~State() {
    if (stream != nullptr) communicator.device().destroy_stream(stream);
  }

  bool make_buffer(uint32_t side, Diagnostics& diagnostics);
  void place(const RunSpec& spec, RunResult& result);
  bool call(const BoundCall& binding, uint64_t number, OutputCheck* check, RankResult& result,
            Diagnostics& diagnostics);

  Communicator& communicator;
  const std::shared_ptr<const Program> plan;
  const RunnerOptions options;
  std::unique_ptr<Executable> executable;
  StreamHandle stream = nullptr;
  CallerBuffer buffers[2];

  // Of the present run.
  uint8_t* mirror[2] = {};
  uint8_t* device[2] = {};
  uint64_t bytes[2] = {};
  bool shared = false;
  uint32_t outer = kInput;
};

bool RankRunner::State::make_buffer(uint32_t side, Diagnostics& diagnostics) {
  CallerBuffer& buffer = buffers[side];
  const Contract& contract = plan->contract;
  const uint64_t part = Chunking::part_for_message(contract, options.load.max_bytes, 1);
  const uint64_t most =
      Chunking(contract, part, plan->launch.align)
          .buffer_bytes(side == kInput ? Side::input : Side::output, communicator.rank());
  buffer.offset = side == kInput ? options.input_offset : options.output_offset;
  buffer.memory =
      communicator.device().allocate(buffer.offset + most, "a caller's buffer", diagnostics);
  if (buffer.memory == nullptr) return false;
  buffer.mirror.resize(most);
  if (!options.registered || !options.load.zero_copy) return true;
  buffer.registered = communicator.register_buffer(buffer.device(), most, diagnostics);
  return buffer.registered != nullptr;
}

/// Lays the buffers of a call out and completes `result`.
void RankRunner::State::place(const RunSpec& spec, RunResult& result) {
  const Contract& contract = plan->contract;
  const uint32_t element = info(spec.dtype).bytes;
  const uint64_t part = Chunking::part_for_message(contract, spec.bytes, element);
  const Chunking chunking(contract, part, plan->launch.align);
  result.bytes = chunking.message_bytes();
  result.count = result.bytes / element;
  result.in_place = spec.in_place.value_or(contract.in_place == InPlace::yes);
  const CallerBuffers callers =
      caller_buffers(contract, chunking, communicator.rank(), result.in_place);
  shared = callers.shared;
  outer = callers.outer;
  for (const uint32_t side : {kInput, kOutput}) {
    const bool inside = shared && side != outer;
    CallerBuffer& buffer = buffers[shared ? outer : side];
    const uint64_t offset = inside ? callers.inner_offset : 0;
    mirror[side] = buffer.mirror.data() + offset;
    device[side] = buffer.device() + offset;
    bytes[side] =
        chunking.buffer_bytes(side == kInput ? Side::input : Side::output, communicator.rank());
  }
}

bool RankRunner::State::call(const BoundCall& binding, uint64_t number, OutputCheck* check,
                             RankResult& result, Diagnostics& diagnostics) {
  Device& on = communicator.device();
  if (check != nullptr) {
    check->fill(communicator.rank(), number, mirror[kInput], mirror[kOutput]);
    for (const uint32_t side : {kInput, kOutput}) {
      if (shared && side != outer) continue;
      if (!on.write(device[side], mirror[side], bytes[side], diagnostics)) return false;
    }
  }
  const int64_t start = now();
  if (!executable->launch(binding, stream, diagnostics) ||
      !communicator.synchronize(stream, diagnostics)) {
    return false;
  }
  const int64_t end = now();
  result.run.seconds += static_cast<double>(end - start) * 1e-9;
  if (plan->contract.kind == CollectiveKind::barrier) {
    result.entered.push_back(start);
    result.left.push_back(end);
  }
  if (check == nullptr) return true;
  if (!on.read(mirror[kOutput], device[kOutput], bytes[kOutput], diagnostics)) return false;
  check->compare(communicator.rank(), number, mirror[kOutput]);
  return true;
}

RankRunner::RankRunner(Communicator& communicator, std::shared_ptr<const Program> plan,
                       const RunnerOptions& options)
    : state_(std::make_unique<State>(communicator, std::move(plan), options)) {}
RankRunner::~RankRunner() = default;

bool RankRunner::load(Diagnostics& diagnostics) {
  State& s = *state_;
  s.executable = s.communicator.load(s.plan, s.options.load, diagnostics);
  if (s.executable == nullptr) return false;
  s.stream = s.communicator.device().create_stream(diagnostics);
  return s.stream != nullptr && s.make_buffer(kInput, diagnostics) &&
         s.make_buffer(kOutput, diagnostics);
}

RankResult RankRunner::run(const RunSpec& spec, Diagnostics& diagnostics) {
  State& s = *state_;
  RankResult result;
  s.place(spec, result.run);
  const BoundCall binding = s.executable->bind({.bytes = result.run.bytes,
                                                .dtype = spec.dtype,
                                                .op = spec.op,
                                                .accumulate = spec.accumulate,
                                                .input = s.device[kInput],
                                                .output = s.device[kOutput]},
                                               diagnostics);
  if (!binding) return result;
  const Contract& contract = s.plan->contract;
  const DtypeInfo& type = info(spec.dtype);
  const TestValues values(spec.dtype, spec.accumulate.value_or(type.accumulate),
                          contract.reduces() ? spec.op : ReduceOp::call, contract.ranks);
  OutputCheck check(contract, Chunking::part_for_message(contract, spec.bytes, type.bytes),
                    s.plan->launch.align, values, s.communicator.rank());
  for (uint32_t i = 0; i < spec.iterations; ++i) {
    if (!s.call(binding, i, spec.check ? &check : nullptr, result, diagnostics)) {
      result.run.status = RunStatus::hung;
      return result;
    }
  }
  if (spec.iterations > 0) result.run.seconds /= spec.iterations;
  result.run.wrong = check.wrong();
  check.report(diagnostics);
  result.run.status = check.wrong() == 0 ? RunStatus::right : RunStatus::wrong;
  return result;
}

bool kept_together(const std::vector<RankResult>& results) {
  for (size_t call = 0; call < results.front().left.size(); ++call) {
    int64_t last_in = std::numeric_limits<int64_t>::min();
    int64_t first_out = std::numeric_limits<int64_t>::max();
    for (const RankResult& r : results) {
      if (r.left.size() <= call) continue;
      last_in = std::max(last_in, r.entered[call]);
      first_out = std::min(first_out, r.left[call]);
    }
    if (first_out < last_in) return false;
  }
  return true;
}

}  // namespace mscclc
