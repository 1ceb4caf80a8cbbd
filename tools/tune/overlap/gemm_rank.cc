#include "tools/tune/overlap/gemm_rank.h"

#include <algorithm>
#include <chrono>

namespace mscclc::tune {
namespace {

constexpr uint32_t kFewRuns = 2;   ///< that show how many fill a batch
constexpr uint32_t kMaxRuns = 50;  ///< of a batch, and so of a graph

/// Another owns it, and outlives what this is given to.
template <class T>
std::shared_ptr<T> borrowed(T& of) {
  return std::shared_ptr<T>(&of, [](T*) {});
}

}  // namespace

std::unique_ptr<GemmRank> GemmRank::make(Communicator& communicator, GemmTeam& team,
                                         Diagnostics& diagnostics) {
  std::unique_ptr<GemmRank> made(new GemmRank(communicator, team));
  made->owner_ = {.device = borrowed(communicator.device()),
                  .communicator = borrowed(communicator),
                  .collectives = Collectives::create(communicator, team.library, {}, diagnostics),
                  .turns = make_overlap_turns()};
  made->stream_ = communicator.device().create_stream(diagnostics);
  const bool well = made->owner_.collectives != nullptr && made->stream_ != nullptr;
  return well ? std::move(made) : nullptr;
}

GemmRank::~GemmRank() {
  if (stream_ != nullptr) communicator_.device().destroy_stream(stream_);
}

void GemmRank::run(GemmJob& job) {
  if (prepare(job) && check(job)) time(job);
  graph_.reset();  // it runs the object
  object_.reset();
  Diagnostics said;
  job.lost[communicator_.rank()] = communicator_.has_failed(said);
  team_.meeting.meet();
}

/// All ranks get the same answer.
bool GemmRank::all_well(GemmJob& job, bool here) {
  const bool well = team_.meeting.all_well(communicator_.rank(), here);
  if (communicator_.rank() == 0) job.well = well;
  return well;
}

bool GemmRank::prepare(GemmJob& job) {
  Diagnostics& diagnostics = problems(job);
  if (matrices_ == nullptr || !matrices_->fit(job.config)) {
    matrices_.reset();  // before there are others
    matrices_ = GemmMatrices::make(communicator_.device(), job.config, communicator_.rank(),
                                   communicator_.size(), diagnostics);
  }
  if (!all_well(job, matrices_ != nullptr)) return false;
  object_ = Overlap::create(owner_, job.config, team_.overlap, diagnostics);
  return all_well(job, object_ != nullptr);
}

bool GemmRank::put(uint32_t runs, Diagnostics& diagnostics) {
  for (uint32_t i = 0; i < runs; ++i) {
    if (!object_->run(matrices_->call(), stream_, diagnostics)) return false;
  }
  return true;
}

bool GemmRank::run_batch(uint32_t runs, Diagnostics& diagnostics) {
  const bool put_all =
      graph_ != nullptr ? graph_->launch(stream_, diagnostics) : put(runs, diagnostics);
  if (!put_all) {
    communicator_.abort(diagnostics);  // the other ranks wait for this one
    Diagnostics ignored;               // what is on the stream still uses the matrices
    (void)communicator_.device().drain(ignored);
    return false;
  }
  return communicator_.synchronize(stream_, diagnostics) && object_->check(diagnostics);
}

bool GemmRank::check(GemmJob& job) {
  Diagnostics& diagnostics = problems(job);
  if (!all_well(job, matrices_->poison(diagnostics))) return false;
  if (!all_well(job, run_batch(1, diagnostics))) return false;
  const auto wrong = matrices_->wrong(diagnostics);
  job.wrong[communicator_.rank()] = wrong.value_or(0);
  return all_well(job, wrong.has_value()) &&
         std::ranges::all_of(job.wrong, [](uint64_t count) { return count == 0; });
}

/// Nanoseconds of a run.
std::optional<double> GemmRank::timed_batch(GemmJob& job, uint32_t runs) {
  const uint32_t rank = communicator_.rank();
  const auto taken = team_.meeting.time(rank, [&] { return run_batch(runs, problems(job)); });
  if (rank == 0) job.well = taken.has_value();
  if (!taken) return std::nullopt;
  return *taken / runs;
}

void GemmRank::time(GemmJob& job) {
  const auto few = timed_batch(job, kFewRuns);
  if (!few) return;
  const double batch = std::chrono::duration<double, std::nano>(team_.options.batch).count();
  const double wanted = std::clamp(batch / std::max(*few, 1.0), 1.0, double{kMaxRuns});
  const auto runs = static_cast<uint32_t>(wanted);
  if (job.mode == overlap::RunMode::captured) {
    Diagnostics& diagnostics = problems(job);
    graph_ = StreamGraph::capture(
        *team_.graphs, stream_, [&] { return put(runs, diagnostics); }, diagnostics);
    if (!all_well(job, graph_ != nullptr)) return;
  }
  if (!timed_batch(job, runs)) return;  // the first launch of a graph takes longer
  for (uint32_t i = 0; i < team_.options.batches; ++i) {
    const auto taken = timed_batch(job, runs);
    if (!taken) return;
    if (communicator_.rank() == 0) job.times.push_back(*taken);
  }
}

}  // namespace mscclc::tune
