#include "tools/measure/rank_team.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/diagnostics/first_message.h"
#include "runtime/support/environment/environment.h"
#include "tools/measure/rank_threads.h"
#include "tools/measure/team_meeting.h"
#include "tools/measure/team_rank.h"

namespace mscclc {

struct RankTeam::State {
  explicit State(const TeamOptions& how)
      : options(how), meeting(how.ranks), nccls(how.ranks), without_nccl(how.ranks) {}

  /// A rank of NCCL's, or nullptr on all ranks.
  std::unique_ptr<NcclRank> make_nccl(Communicator& communicator);

  const TeamOptions options;
  TeamMeeting meeting;
  std::optional<GraphDriver> graphs;
  std::unique_ptr<RankThreads> threads;
  std::vector<std::unique_ptr<NcclRank>> nccls;  ///< by rank, as what follows
  std::vector<Diagnostics> without_nccl;         ///< why it has no NCCL
  std::string nccl;
  bool broken = false;
};

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

RankTeam::RankTeam(std::unique_ptr<State> state) : state_(std::move(state)) {}

RankTeam::~RankTeam() {
  if (state_->threads == nullptr) return;
  state_->threads->run([&](Communicator& own) { state_->nccls[own.rank()].reset(); });
}

std::unique_ptr<RankTeam> RankTeam::start(const TeamOptions& options, Diagnostics& diagnostics) {
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
  state.threads = RankThreads::start(options.ranks, options.devices, diagnostics);
  if (state.threads == nullptr) return nullptr;
  if (options.nccl) {
    state.threads->run([&](Communicator& own) { state.nccls[own.rank()] = state.make_nccl(own); });
  }
  return team;
}

std::optional<CallTime> RankTeam::time(const TimedCall& call, Diagnostics& diagnostics) {
  TeamJob job(call, state_->options, state_->options.ranks);
  const GraphDriver* const graphs = state_->graphs ? &*state_->graphs : nullptr;
  state_->threads->run([&](Communicator& own) {
    TeamRank(own, state_->meeting, state_->nccls[own.rank()].get(), graphs).run(job);
  });
  CallTime time;
  for (const uint64_t wrong : job.wrong) time.wrong += wrong;
  state_->broken |= std::ranges::count(job.lost, 0) != std::ssize(job.lost);
  if (!job.well) {
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
LinkKind RankTeam::links() const { return state_->threads->links(); }
uint32_t RankTeam::multiprocessors() const { return state_->threads->multiprocessors(); }
const std::string& RankTeam::device() const { return state_->threads->device(); }

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
