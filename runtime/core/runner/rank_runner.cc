#include "runtime/core/runner/rank_runner.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "runtime/core/runner/checked_call.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;

int64_t now() { return Clock::now().time_since_epoch().count(); }

}  // namespace

struct RankRunner::State {
  State(Communicator& communicator, std::shared_ptr<const Program> plan,
        const RunnerOptions& options)
      : communicator(communicator), plan(std::move(plan)), options(options) {}
  ~State() {
    if (stream != nullptr) communicator.device().destroy_stream(stream);
  }

  bool prepare(Diagnostics& diagnostics);
  bool call(CheckedCall& call, uint64_t number, bool check, RankResult& result,
            Diagnostics& diagnostics);
  bool begin_stamps(Diagnostics& diagnostics);
  bool end_stamps(RankResult& result, Diagnostics& diagnostics);

  Communicator& communicator;
  const std::shared_ptr<const Program> plan;
  const RunnerOptions options;
  std::unique_ptr<CallerMemory> memory;
  std::unique_ptr<Memory> stamps;          ///< of the call that is stamped
  std::unique_ptr<Executable> executable;  ///< ends first: its proxy may read memory after an error
  StreamHandle stream = nullptr;
};

bool RankRunner::State::call(CheckedCall& call, uint64_t number, bool check, RankResult& result,
                             Diagnostics& diagnostics) {
  if (check && !call.fill(number, diagnostics)) return false;
  const int64_t start = now();
  if (!call.launch(stream, diagnostics) || !communicator.synchronize(stream, diagnostics)) {
    return false;
  }
  const int64_t end = now();
  result.run.seconds += static_cast<double>(end - start) * 1e-9;
  if (plan->contract.kind == CollectiveKind::barrier) {
    result.entered.push_back(start);
    result.left.push_back(end);
  }
  return !check || call.compare(number, diagnostics);
}

bool RankRunner::State::begin_stamps(Diagnostics& diagnostics) {
  const uint64_t blocks = plan->ranks[communicator.rank()].blocks;
  if (options.stamp_words == 0 || blocks == 0) return true;
  const uint64_t bytes = blocks * options.stamp_words * sizeof(uint64_t);
  stamps = communicator.device().allocate(bytes, "stamps", diagnostics);
  if (stamps == nullptr) {
    communicator.abort(diagnostics);  // the others wait for the call
    return false;
  }
  executable->stamp_launches(reinterpret_cast<uint64_t*>(stamps->data()), options.stamp_words);
  return true;
}

bool RankRunner::State::end_stamps(RankResult& result, Diagnostics& diagnostics) {
  if (stamps == nullptr) return true;
  executable->stamp_launches(nullptr, 0);
  result.stamp_words = options.stamp_words;
  result.stamps.resize(stamps->bytes() / sizeof(uint64_t));
  const bool read = communicator.device().read(result.stamps.data(), stamps->data(),
                                               stamps->bytes(), diagnostics);
  stamps.reset();
  return read;
}

bool RankRunner::State::prepare(Diagnostics& diagnostics) {
  stream = communicator.device().create_stream(diagnostics);
  if (stream == nullptr) return false;
  memory = CallerMemory::make(communicator, *plan,
                              {.max_bytes = options.load.max_bytes,
                               .input_offset = options.input_offset,
                               .output_offset = options.output_offset,
                               .registered = options.registered && options.load.zero_copy},
                              diagnostics);
  return memory != nullptr;
}

RankRunner::RankRunner(Communicator& communicator, std::shared_ptr<const Program> plan,
                       const RunnerOptions& options)
    : state_(std::make_unique<State>(communicator, std::move(plan), options)) {}
RankRunner::~RankRunner() = default;

bool RankRunner::load(Diagnostics& diagnostics) {
  State& s = *state_;
  s.executable = s.communicator.load(s.plan, s.options.load, diagnostics);
  if (s.executable == nullptr) return false;  // on all ranks
  if (s.prepare(diagnostics)) return true;
  s.communicator.abort(diagnostics);
  return false;
}

RankResult RankRunner::run(const RunSpec& spec, Diagnostics& diagnostics) {
  State& s = *state_;
  RankResult result;
  CheckedCall call(s.communicator, *s.executable, *s.memory, spec);
  result.run.bytes = call.message_bytes();
  result.run.count = result.run.bytes / info(spec.dtype).bytes;
  result.run.in_place = call.in_place();
  if (!call.bind(diagnostics)) return result;
  for (uint32_t i = 0; i < spec.iterations; ++i) {
    const bool last = i + 1 == spec.iterations;
    if ((last && !s.begin_stamps(diagnostics)) ||
        !s.call(call, i, spec.check, result, diagnostics) ||
        (last && !s.end_stamps(result, diagnostics))) {
      result.run.status = RunStatus::hung;
      return result;
    }
  }
  if (spec.iterations > 0) result.run.seconds /= spec.iterations;
  result.run.wrong = call.wrong();
  call.report(diagnostics);
  result.run.status = call.wrong() == 0 ? RunStatus::right : RunStatus::wrong;
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
