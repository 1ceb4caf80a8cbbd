#include "tools/tune/overlap/team_gemm_timer.h"

#include <algorithm>
#include <vector>

#include "runtime/api/builtin_library.h"
#include "runtime/doors/c/libraries/other_libraries.h"
#include "tools/measure/rank_threads.h"
#include "tools/tune/overlap/gemm_rank.h"

namespace mscclc::tune {

struct TeamGemmTimer::State {
  explicit State(const TeamOptions& options) : team(options), members(options.ranks) {}
  GemmTeam team;
  std::unique_ptr<RankThreads> threads;
  std::vector<std::unique_ptr<GemmRank>> members;
  bool broken = false;
};

TeamGemmTimer::TeamGemmTimer(std::unique_ptr<State> state) : state_(std::move(state)) {}

TeamGemmTimer::~TeamGemmTimer() {
  if (state_->threads == nullptr) return;
  state_->threads->run([&](Communicator& own) { state_->members[own.rank()].reset(); });
}

std::unique_ptr<TeamGemmTimer> TeamGemmTimer::start(const TeamOptions& options,
                                                    Diagnostics& diagnostics) {
  std::unique_ptr<TeamGemmTimer> timer(new TeamGemmTimer(std::make_unique<State>(options)));
  State& state = *timer->state_;
  GemmTeam& team = state.team;
  if (options.graphs) {
    auto driver = GraphDriver::of_process();
    if (!driver) {
      diagnostics.error("cuda", {}, driver.error().text());
      return nullptr;
    }
    team.graphs = *driver;
  }
  team.library = builtin_library({}, diagnostics);
  if (team.library == nullptr) return nullptr;
  team.overlap.programs = builtin_overlap_programs();
  team.overlap.nccl.missing = "it was not asked for";
  if (options.nccl) team.overlap.nccl = capi::nccl_library(!options.devices.gpus, nullptr);
  state.threads = RankThreads::start(options.ranks, options.devices, diagnostics);
  if (state.threads == nullptr) return nullptr;
  std::vector<Diagnostics> problems(options.ranks);
  state.threads->run([&](Communicator& own) {
    state.members[own.rank()] = GemmRank::make(own, team, problems[own.rank()]);
  });
  add_first(problems, diagnostics);
  return diagnostics.has_errors() ? nullptr : std::move(timer);
}

std::optional<CallTime> TeamGemmTimer::time(const OverlapConfig& config, overlap::RunMode mode,
                                            Diagnostics& diagnostics) {
  GemmJob job(config, mode, state_->team.options.ranks);
  state_->threads->run([&](Communicator& own) { state_->members[own.rank()]->run(job); });
  state_->broken |= std::ranges::count(job.lost, 0) != std::ssize(job.lost);
  if (!job.well) {
    add_first(job.problems, diagnostics);
    return std::nullopt;
  }
  CallTime time;
  for (const uint64_t wrong : job.wrong) time.wrong += wrong;
  if (time.wrong > 0) return time;
  std::ranges::sort(job.times);
  time.ns = job.times[job.times.size() / 2];
  time.spread = (job.times.back() - job.times.front()) / time.ns;
  return time;
}

bool TeamGemmTimer::broken() const { return state_->broken; }
uint32_t TeamGemmTimer::multiprocessors() const { return state_->threads->multiprocessors(); }
const std::string& TeamGemmTimer::device() const { return state_->threads->device(); }
const std::string& TeamGemmTimer::why_no_nccl() const { return state_->team.overlap.nccl.missing; }

}  // namespace mscclc::tune
