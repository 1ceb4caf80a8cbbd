// One rank of a RankTeam, on its thread: loads what is to be timed, checks it once, and times
// batches of calls together with the other ranks.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/api/communicator.h"
#include "runtime/core/runner/checked_call.h"
#include "tools/measure/nccl.h"
#include "tools/measure/rank_team.h"
#include "tools/measure/stream_graph.h"
#include "tools/measure/team_meeting.h"

namespace mscclc {

/// A call as all ranks time it together. Each rank writes only what is its own, between meetings.
struct TeamJob {
  TeamJob(const TimedCall& timed, const TeamOptions& how, uint32_t ranks)
      : call(timed), options(how), problems(ranks), lost(ranks, 0), wrong(ranks) {}

  const TimedCall& call;
  const TeamOptions& options;
  std::vector<Diagnostics> problems;  ///< by rank
  std::vector<uint8_t> lost;          ///< by rank: the communicator can do nothing more
  std::vector<uint64_t> wrong;
  bool well = true;           ///< on all ranks: rank 0 writes it, as what follows
  std::vector<double> times;  ///< of a call, by batch
};

class TeamRank {
 public:
  /// All must outlive it. `nccl`: nullptr: none. `graphs`: nullptr: calls are launched one by one.
  TeamRank(Communicator& communicator, TeamMeeting& meeting, NcclRank* nccl,
           const GraphDriver* graphs)
      : communicator_(communicator), meeting_(meeting), nccl_(nccl), graphs_(graphs) {}

  /// REQUIRES: all ranks run the same job; there is NCCL if it is to make the calls.
  void run(TeamJob& job);

 private:
  /// How many calls, and how often the kernels stand around each: not, once or twice.
  struct Batch {
    uint32_t calls = 1, kernels = 0;
  };

  Diagnostics& problems(TeamJob& job) { return job.problems[communicator_.rank()]; }
  bool prepare(TeamJob& job);
  bool give_up(Diagnostics& diagnostics);
  bool all_well(TeamJob& job, bool here);
  bool check(TeamJob& job);
  bool launch(TeamJob& job, Diagnostics& diagnostics);
  bool use(uint32_t side, Diagnostics& diagnostics);
  bool put(TeamJob& job, const Batch& batch, Diagnostics& diagnostics);
  bool capture(TeamJob& job, uint32_t calls);
  bool run_batch(TeamJob& job, const Batch& batch, Diagnostics& diagnostics);
  std::optional<double> timed_batch(TeamJob& job, const Batch& batch);
  std::optional<double> timed_call(TeamJob& job, uint32_t calls);
  void time(TeamJob& job);

  Communicator& communicator_;
  TeamMeeting& meeting_;
  NcclRank* const nccl_;
  const GraphDriver* const graphs_;
  RunSpec spec_;
  std::unique_ptr<CallerMemory> memory_;
  std::unique_ptr<Executable> executable_;
  std::optional<CheckedCall> call_;
  StreamHandle stream_ = nullptr;
  std::unique_ptr<StreamGraph> captured_[3];  ///< by Batch::kernels; none: launched one by one
  uint32_t captured_calls_ = 0;               ///< of each of them
};

}  // namespace mscclc
