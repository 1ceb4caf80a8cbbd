#include "tools/measure/team_rank.h"

#include <algorithm>

#include "runtime/api/device.h"

namespace mscclc {
namespace {

constexpr uint32_t kFewCalls = 3;        ///< that show how many fill a batch
constexpr uint32_t kMaxCalls = 1000;     ///< of a batch
constexpr uint32_t kCapturedCalls = 50;  ///< of a graph, as mscclc-bench has it

/// A proxy may wait for what a caller queues in graphs (docs/design/devices.md, "Copies in
/// graphs"), so these calls are launched one by one.
bool has_ports(const Program& plan) {
  return std::ranges::any_of(plan.ranks, [](const Rank& rank) {
    return std::ranges::any_of(
        rank.channels, [](const Channel& channel) { return channel.kind == ChannelKind::port; });
  });
}

}  // namespace

void TeamRank::run(TeamJob& job) {
  if (all_well(job, prepare(job)) && check(job)) time(job);
  for (auto& graph : captured_) graph.reset();
  captured_calls_ = 0;
  call_.reset();
  executable_.reset();
  memory_.reset();
  if (stream_ != nullptr) communicator_.device().destroy_stream(stream_);
  stream_ = nullptr;
  Diagnostics said;
  job.lost[communicator_.rank()] = communicator_.has_failed(said);
  meeting_.meet();
}

bool TeamRank::prepare(TeamJob& job) {
  const TimedCall& timed = job.call;
  Diagnostics& diagnostics = problems(job);
  executable_ = communicator_.load(timed.plan,
                                   {.max_bytes = timed.bytes,
                                    .dtype = timed.dtype,
                                    .zero_copy = true,
                                    .compiled_kernels = false},  // what a cache has is chance
                                   diagnostics);
  if (executable_ == nullptr) return false;  // on all ranks
  memory_ = CallerMemory::make(communicator_, *timed.plan,
                               {.max_bytes = timed.bytes, .registered = true}, diagnostics);
  stream_ = communicator_.device().create_stream(diagnostics);
  if (memory_ == nullptr || stream_ == nullptr) return give_up(diagnostics);
  spec_ = {.bytes = timed.bytes, .dtype = timed.dtype, .op = timed.op};
  call_.emplace(communicator_, *executable_, *memory_, spec_);
  if (!call_->bind(diagnostics)) return false;
  if (!timed.nccl || NcclRank::can_do(timed.plan->contract, timed.dtype, call_->in_place())) {
    return true;
  }
  diagnostics.error("nccl", {}, "NCCL has no such collective");
  return false;
}

/// The other ranks wait for this one in the middle of something.
bool TeamRank::give_up(Diagnostics& diagnostics) {
  communicator_.abort(diagnostics);
  return false;
}

/// Is all well on all ranks? All get the same answer.
bool TeamRank::all_well(TeamJob& job, bool here) {
  const bool well = meeting_.all_well(communicator_.rank(), here);
  if (communicator_.rank() == 0) job.well = well;
  return well;
}

bool TeamRank::check(TeamJob& job) {
  Diagnostics& diagnostics = problems(job);
  const bool done = call_->fill(0, diagnostics) && run_batch(job, {}, diagnostics) &&
                    call_->compare(0, diagnostics);
  job.wrong[communicator_.rank()] = call_->wrong();
  return all_well(job, done) &&
         std::ranges::all_of(job.wrong, [](uint64_t wrong) { return wrong == 0; });
}

bool TeamRank::launch(TeamJob& job, Diagnostics& diagnostics) {
  if (!job.call.nccl) return call_->launch(stream_, diagnostics);
  const Contract& contract = job.call.plan->contract;
  const uint64_t part =
      Chunking::part_for_message(contract, job.call.bytes, info(job.call.dtype).bytes);
  return nccl_->start({&contract, part, job.call.dtype, job.call.op, memory_->device(kInput),
                       memory_->device(kOutput)},
                      stream_, diagnostics);
}

/// A kernel that reads and writes all of a buffer, as one of the user's would.
bool TeamRank::use(uint32_t side, Diagnostics& diagnostics) {
  uint8_t* const at = memory_->device(side);
  const uint64_t count = call_->bytes(side) / info(Dtype::f32).bytes;
  return count == 0 ||
         communicator_.device().scale({at, at, count, Dtype::f32, 1.0}, stream_, diagnostics);
}

/// Puts calls on the stream, and what stands around them.
bool TeamRank::put(TeamJob& job, const Batch& batch, Diagnostics& diagnostics) {
  for (uint32_t i = 0; i < batch.calls; ++i) {
    for (uint32_t more = 1; more < batch.kernels; ++more) {
      if (!use(kInput, diagnostics) || !use(kOutput, diagnostics)) return false;
    }
    const bool around = batch.kernels > 0;
    if ((around && !use(kInput, diagnostics)) || !launch(job, diagnostics) ||
        (around && !use(kOutput, diagnostics))) {
      return false;
    }
  }
  return true;
}

/// Captures batches of so many calls, where that is asked for.
bool TeamRank::capture(TeamJob& job, uint32_t calls) {
  if (graphs_ == nullptr || has_ports(*job.call.plan)) return true;
  captured_calls_ = calls;
  for (uint32_t kernels = 0; kernels <= 2; ++kernels) {
    if ((kernels != 0) != job.options.between) continue;
    captured_[kernels] = StreamGraph::capture(
        *graphs_, stream_,
        [&] {
          return put(job, {calls, kernels}, problems(job));
        },
        problems(job));
    if (captured_[kernels] == nullptr) return false;
  }
  return true;
}

bool TeamRank::run_batch(TeamJob& job, const Batch& batch, Diagnostics& diagnostics) {
  const StreamGraph* graph = captured_[batch.kernels].get();
  if (graph == nullptr) {
    if (!put(job, batch, diagnostics)) return give_up(diagnostics);
  } else {
    for (uint32_t done = 0; done < batch.calls; done += captured_calls_) {
      if (!graph->launch(stream_, diagnostics)) return give_up(diagnostics);
    }
  }
  return communicator_.synchronize(stream_, diagnostics);
}

/// Nanoseconds of a call of a batch with what stands around it.
std::optional<double> TeamRank::timed_batch(TeamJob& job, const Batch& batch) {
  const uint32_t rank = communicator_.rank();
  const auto taken = meeting_.time(rank, [&] { return run_batch(job, batch, problems(job)); });
  if (rank == 0) job.well = taken.has_value();
  if (!taken) return std::nullopt;
  return *taken / batch.calls;
}

/// Nanoseconds of a call: of calls back to back, or what it adds to kernels around it. What these
/// take is the difference between having them once and twice.
std::optional<double> TeamRank::timed_call(TeamJob& job, uint32_t calls) {
  if (!job.options.between) return timed_batch(job, {calls});
  const auto once = timed_batch(job, {calls, 1});
  const auto twice = once ? timed_batch(job, {calls, 2}) : std::nullopt;
  if (!twice) return std::nullopt;
  return *once - (*twice - *once);
}

void TeamRank::time(TeamJob& job) {
  const auto few = timed_batch(job, {kFewCalls});
  if (!few) return;
  const double wanted =
      std::chrono::duration<double, std::nano>(job.options.batch).count() / std::max(*few, 1.0);
  auto calls = static_cast<uint32_t>(std::clamp(wanted, 1.0, double{kMaxCalls}));
  const uint32_t in_graph = std::min(calls, kCapturedCalls);
  if (!all_well(job, capture(job, in_graph))) return;
  if (captured_calls_ != 0) {
    calls = calls / in_graph * in_graph;
    if (!timed_call(job, in_graph)) return;  // the first launch of a graph takes longer
  }
  for (uint32_t i = 0; i < job.options.batches; ++i) {
    const auto taken = timed_call(job, calls);
    if (!taken) return;
    if (communicator_.rank() == 0) job.times.push_back(*taken);
  }
}

}  // namespace mscclc
