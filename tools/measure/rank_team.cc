#include "tools/measure/rank_team.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/api/communicator.h"
#include "runtime/api/in_process.h"
#include "runtime/core/runner/checked_call.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kFewCalls = 3;     ///< that show how many fill a batch
constexpr uint32_t kMaxCalls = 1000;  ///< of a batch

double ns_of(Clock::duration taken) {
  return std::chrono::duration<double, std::nano>(taken).count();
}

/// A call as all ranks time it together. Each rank writes only what is its own, between meetings.
struct Job {
  Job(const TimedCall& timed, const TeamOptions& how, uint32_t ranks)
      : call(timed),
        options(how),
        problems(ranks),
        well(ranks, 1),
        lost(ranks, 0),
        wrong(ranks),
        begun(ranks),
        ended(ranks) {}

  const TimedCall& call;
  const TeamOptions& options;
  std::vector<Diagnostics> problems;  ///< by rank
  std::vector<uint8_t> well;          ///< by rank: all has gone well there
  std::vector<uint8_t> lost;          ///< by rank: the communicator can do nothing more
  std::vector<uint64_t> wrong;
  std::vector<Clock::time_point> begun, ended;  ///< of the last batch
  std::vector<double> times;                    ///< of a call, by batch: rank 0 adds them
};

/// One rank, on its thread.
class TeamRank {
 public:
  TeamRank(Communicator& communicator, std::barrier<>& meeting)
      : communicator_(communicator), meeting_(meeting) {}

  void run(Job& job) {
    if (all_well(job, prepare(job)) && check(job)) time(job);
    call_.reset();
    executable_.reset();
    memory_.reset();
    if (stream_ != nullptr) communicator_.device().destroy_stream(stream_);
    stream_ = nullptr;
    Diagnostics said;
    job.lost[communicator_.rank()] = communicator_.has_failed(said);
    meeting_.arrive_and_wait();
  }

 private:
  Diagnostics& problems(Job& job) { return job.problems[communicator_.rank()]; }

  bool prepare(Job& job) {
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
    return call_->bind(diagnostics);
  }

  /// The other ranks wait for this one in the middle of something.
  bool give_up(Diagnostics& diagnostics) {
    communicator_.abort(diagnostics);
    return false;
  }

  /// Is all well on all ranks? All get the same answer.
  bool all_well(Job& job, bool here) {
    job.well[communicator_.rank()] = here;
    meeting_.arrive_and_wait();
    const bool well = std::ranges::count(job.well, 0) == 0;
    meeting_.arrive_and_wait();
    return well;
  }

  bool check(Job& job) {
    Diagnostics& diagnostics = problems(job);
    const bool done =
        call_->fill(0, diagnostics) && batch(1, diagnostics) && call_->compare(0, diagnostics);
    job.wrong[communicator_.rank()] = call_->wrong();
    return all_well(job, done) &&
           std::ranges::all_of(job.wrong, [](uint64_t wrong) { return wrong == 0; });
  }

  bool batch(uint32_t calls, Diagnostics& diagnostics) {
    for (uint32_t i = 0; i < calls; ++i) {
      if (!call_->launch(stream_, diagnostics)) return give_up(diagnostics);
    }
    return communicator_.synchronize(stream_, diagnostics);
  }

  /// Nanoseconds of a call of a batch, from its first launch on any rank to its last end.
  std::optional<double> timed_batch(Job& job, uint32_t calls) {
    const uint32_t rank = communicator_.rank();
    meeting_.arrive_and_wait();
    job.begun[rank] = Clock::now();
    const bool done = batch(calls, problems(job));
    job.ended[rank] = Clock::now();
    if (!all_well(job, done)) return std::nullopt;
    const double taken =
        ns_of(*std::ranges::max_element(job.ended) - *std::ranges::min_element(job.begun));
    meeting_.arrive_and_wait();  // all have read the times
    return taken / calls;
  }

  void time(Job& job) {
    const auto few = timed_batch(job, kFewCalls);
    if (!few) return;
    const double wanted = ns_of(job.options.batch) / std::max(*few, 1.0);
    const auto calls = static_cast<uint32_t>(std::clamp(wanted, 1.0, double{kMaxCalls}));
    for (uint32_t i = 0; i < job.options.batches; ++i) {
      const auto taken = timed_batch(job, calls);
      if (!taken) return;
      if (communicator_.rank() == 0) job.times.push_back(*taken);
    }
  }

  Communicator& communicator_;
  std::barrier<>& meeting_;
  RunSpec spec_;
  std::unique_ptr<CallerMemory> memory_;
  std::unique_ptr<Executable> executable_;
  std::optional<CheckedCall> call_;
  StreamHandle stream_ = nullptr;
};

}  // namespace

/// Threads that take one job after the other.
struct RankTeam::State {
  explicit State(const TeamOptions& how)
      : options(how), meeting(static_cast<std::ptrdiff_t>(how.ranks)), problems(how.ranks) {}

  void be_rank(uint32_t rank, std::unique_ptr<Bootstrap> bootstrap,
               std::chrono::milliseconds timeout);
  void run_jobs(Communicator& communicator);
  /// Waits until as many ranks as there are have said so.
  void wait_for_all(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [&] { return done == threads.size(); });
  }

  const TeamOptions options;
  std::barrier<> meeting;
  std::vector<Diagnostics> problems;  ///< by rank, of the beginning
  std::string device;
  LinkKind links = LinkKind::own;
  uint32_t multiprocessors = 0;
  bool broken = false;

  std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  Job* job = nullptr;
  uint64_t jobs = 0;  ///< so far, the one at hand among them
  size_t done = 0;    ///< ranks that have begun, or have done the job at hand
  bool over = false;
  std::vector<std::thread> threads;
};

void RankTeam::State::be_rank(uint32_t rank, std::unique_ptr<Bootstrap> bootstrap,
                              std::chrono::milliseconds timeout) {
  Diagnostics& diagnostics = problems[rank];
  auto opened = open_rank_device(options.devices, rank, rank, diagnostics);
  if (rank == 0 && opened != nullptr) {
    device = opened->name();
    multiprocessors = opened->multiprocessors();
  }
  const auto communicator = Communicator::create(std::move(bootstrap), std::move(opened),
                                                 {.timeout = timeout}, diagnostics);
  if (communicator != nullptr && rank == 0) links = communicator->worst_link();
  {
    const std::lock_guard lock(mutex);
    ++done;
    changed.notify_all();
  }
  if (communicator != nullptr) run_jobs(*communicator);
}

void RankTeam::State::run_jobs(Communicator& communicator) {
  TeamRank own(communicator, meeting);
  for (uint64_t seen = 0;;) {
    Job* next = nullptr;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return over || jobs > seen; });
      if (over) return;
      seen = jobs;
      next = job;
    }
    own.run(*next);
    const std::lock_guard lock(mutex);
    ++done;
    changed.notify_all();
  }
}

RankTeam::RankTeam(std::unique_ptr<State> state) : state_(std::move(state)) {}

RankTeam::~RankTeam() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
    state_->changed.notify_all();
  }
  for (std::thread& thread : state_->threads) thread.join();
}

std::unique_ptr<RankTeam> RankTeam::start(const TeamOptions& options, Diagnostics& diagnostics) {
  const auto timeout = Environment::of_process().timeout(diagnostics);
  if (!timeout) return nullptr;
  auto bootstraps = make_in_process_bootstraps(options.ranks, *timeout);
  std::unique_ptr<RankTeam> team(new RankTeam(std::make_unique<State>(options)));
  State& state = *team->state_;
  for (uint32_t r = 0; r < options.ranks; ++r) {
    std::thread thread = quiet_thread(
        "mscclc-rank", [&state, r, timeout, bootstrap = std::move(bootstraps[r])]() mutable {
          state.be_rank(r, std::move(bootstrap), *timeout);
        });
    if (!has_started(thread, fmt::format("rank {}", r), diagnostics)) {
      for (auto& absent : bootstraps) absent.reset();
      return nullptr;
    }
    state.threads.push_back(std::move(thread));
  }
  std::unique_lock lock(state.mutex);
  state.wait_for_all(lock);
  lock.unlock();
  for (const Diagnostics& own : state.problems) {
    if (diagnostics.has_errors()) break;  // the others say the same
    for (const Diagnostic& d : own.all()) diagnostics.add(d);
  }
  return diagnostics.has_errors() ? nullptr : std::move(team);
}

std::optional<CallTime> RankTeam::time(const TimedCall& call, Diagnostics& diagnostics) {
  Job job(call, state_->options, state_->options.ranks);
  {
    std::unique_lock lock(state_->mutex);
    state_->job = &job;
    state_->done = 0;
    ++state_->jobs;
    state_->changed.notify_all();
    state_->wait_for_all(lock);
  }
  CallTime time;
  for (const uint64_t wrong : job.wrong) time.wrong += wrong;
  state_->broken |= std::ranges::count(job.lost, 0) != std::ssize(job.lost);
  if (std::ranges::count(job.well, 0) > 0) {
    for (const Diagnostics& problems : job.problems) {
      if (diagnostics.has_errors()) break;  // the other ranks say the same
      for (const Diagnostic& d : problems.all()) diagnostics.add(d);
    }
    return std::nullopt;
  }
  if (time.wrong > 0) return time;
  std::ranges::sort(job.times);
  time.ns = job.times[job.times.size() / 2];
  time.spread = (job.times.back() - job.times.front()) / time.ns;
  return time;
}

bool RankTeam::broken() const { return state_->broken; }
uint32_t RankTeam::ranks() const { return state_->options.ranks; }
LinkKind RankTeam::links() const { return state_->links; }
uint32_t RankTeam::multiprocessors() const { return state_->multiprocessors; }
const std::string& RankTeam::device() const { return state_->device; }

}  // namespace mscclc
