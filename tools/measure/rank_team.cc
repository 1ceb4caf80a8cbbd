#include "tools/measure/rank_team.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "ir/diagnostics/first_message.h"
#include "runtime/api/communicator.h"
#include "runtime/api/in_process.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/process/quiet_thread.h"
#include "tools/measure/team_rank.h"

namespace mscclc {

/// Threads that take one job after the other.
struct RankTeam::State {
  explicit State(const TeamOptions& how)
      : options(how),
        meeting(static_cast<std::ptrdiff_t>(how.ranks)),
        problems(how.ranks),
        without_nccl(how.ranks) {}

  void be_rank(uint32_t rank, std::unique_ptr<Bootstrap> bootstrap,
               std::chrono::milliseconds timeout);
  void run_jobs(TeamRank& own);
  /// A rank of NCCL's, or nullptr on all ranks.
  std::unique_ptr<NcclRank> make_nccl(Communicator& communicator);
  /// Waits until as many ranks as there are have said so.
  void wait_for_all(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [&] { return done == threads.size(); });
  }

  const TeamOptions options;
  std::barrier<> meeting;
  std::vector<Diagnostics> problems;  ///< by rank, of the beginning
  /// By rank: why it has no NCCL.
  std::vector<Diagnostics> without_nccl;
  std::optional<GraphDriver> graphs;
  std::string device, nccl;
  LinkKind links = LinkKind::own;
  uint32_t multiprocessors = 0;
  bool broken = false;

  std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  TeamJob* job = nullptr;
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
  // For what calls CUDA itself in this thread: NCCL, and captures.
  if (opened != nullptr && !opened->bind_thread(diagnostics)) opened.reset();
  const auto communicator = Communicator::create(std::move(bootstrap), std::move(opened),
                                                 {.timeout = timeout}, diagnostics);
  if (communicator != nullptr && rank == 0) links = communicator->worst_link();
  const std::unique_ptr<NcclRank> own_nccl =
      communicator != nullptr && options.nccl ? make_nccl(*communicator) : nullptr;
  {
    const std::lock_guard lock(mutex);
    ++done;
    changed.notify_all();
  }
  if (communicator == nullptr) return;
  TeamRank own(*communicator, meeting, own_nccl.get(), graphs ? &*graphs : nullptr);
  run_jobs(own);
}

std::unique_ptr<NcclRank> RankTeam::State::make_nccl(Communicator& communicator) {
  Diagnostics& why = without_nccl[communicator.rank()];
  // NVIDIA's needs GPUs.
  const bool named = Environment::of_process().has(Variable::MSCCLC_NCCL);
  if (!options.devices.gpus && !named) {
    why.error("no-nccl", {}, "there is none on the host device unless MSCCLC_NCCL names one");
    return nullptr;
  }
  auto made = NcclRank::make(communicator.bootstrap(), why);
  if (made != nullptr && communicator.rank() == 0) {
    nccl = fmt::format("NCCL {} ({})", made->version(), made->file());
  }
  return made;
}

void RankTeam::State::run_jobs(TeamRank& own) {
  for (uint64_t seen = 0;;) {
    TeamJob* next = nullptr;
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
  if (options.graphs) {
    auto driver = GraphDriver::of_process();
    if (!driver) {
      diagnostics.error("cuda", {}, driver.error().text());
      return nullptr;
    }
    state.graphs = *driver;
  }
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
  TeamJob job(call, state_->options, state_->options.ranks);
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
  if (time.ns <= 0) {
    diagnostics.error("too-short", {}, "what it adds to the kernels around it cannot be measured");
    return std::nullopt;
  }
  time.spread = (job.times.back() - job.times.front()) / time.ns;
  return time;
}

bool RankTeam::broken() const { return state_->broken; }
uint32_t RankTeam::ranks() const { return state_->options.ranks; }
LinkKind RankTeam::links() const { return state_->links; }
uint32_t RankTeam::multiprocessors() const { return state_->multiprocessors; }
const std::string& RankTeam::device() const { return state_->device; }

std::string RankTeam::nccl() const {
  const bool none = std::ranges::any_of(state_->without_nccl,
                                        [](const Diagnostics& why) { return why.has_errors(); });
  return none ? "" : state_->nccl;
}

std::string RankTeam::why_no_nccl() const {
  for (const Diagnostics& why : state_->without_nccl) {
    if (why.has_errors()) return first_message(why);
  }
  return "it was not asked for";
}

std::string RankTeam::launches() const {
  return fmt::format("{}{}",
                     state_->graphs ? "in CUDA graphs (with ports: one by one)" : "one by one",
                     state_->options.between ? ", between other kernels" : "");
}

}  // namespace mscclc
