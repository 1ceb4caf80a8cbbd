// One rank that times GEMMs that overlap, on its thread: makes an object, checks a run, and times
// batches of runs together with the other ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/choice/overlap/measured.h"
#include "tools/measure/rank_team.h"
#include "tools/measure/stream_graph.h"
#include "tools/measure/team_meeting.h"
#include "tools/tune/overlap/gemm_matrices.h"

namespace mscclc::tune {

/// An object as all ranks time it together. Each rank writes only what is its own.
struct GemmJob {
  GemmJob(const OverlapConfig& of, overlap::RunMode how, uint32_t ranks)
      : config(of), mode(how), problems(ranks), lost(ranks, 0), wrong(ranks) {}

  const OverlapConfig& config;
  const overlap::RunMode mode;
  std::vector<Diagnostics> problems;  ///< by rank
  std::vector<uint8_t> lost;          ///< by rank: the communicator can do nothing more
  std::vector<uint64_t> wrong;        ///< by rank: elements of those that were looked at
  bool well = true;                   ///< on all ranks: rank 0 writes it, as what follows
  std::vector<double> times;          ///< of a run, by batch
};

/// What ranks of a process share.
struct GemmTeam {
  explicit GemmTeam(const TeamOptions& how) : options(how), meeting(how.ranks) {}
  const TeamOptions options;
  TeamMeeting meeting;
  std::optional<GraphDriver> graphs;  ///< none: runs cannot be captured
  std::shared_ptr<PlanProvider> library;
  OverlapOptions overlap;
};

class GemmRank {
 public:
  /// Collective. `team` and `communicator` outlive it. nullptr: reported.
  [[nodiscard]] static std::unique_ptr<GemmRank> make(Communicator& communicator, GemmTeam& team,
                                                      Diagnostics& diagnostics);
  ~GemmRank();
  GemmRank(const GemmRank&) = delete;
  GemmRank& operator=(const GemmRank&) = delete;

  /// REQUIRES: all ranks run the same job; there are graphs if its runs are captured.
  void run(GemmJob& job);

 private:
  GemmRank(Communicator& communicator, GemmTeam& team) : communicator_(communicator), team_(team) {}
  Diagnostics& problems(GemmJob& job) { return job.problems[communicator_.rank()]; }
  bool all_well(GemmJob& job, bool here);
  bool prepare(GemmJob& job);
  bool put(uint32_t runs, Diagnostics& diagnostics);
  bool run_batch(uint32_t runs, Diagnostics& diagnostics);
  bool check(GemmJob& job);
  std::optional<double> timed_batch(GemmJob& job, uint32_t runs);
  void time(GemmJob& job);

  Communicator& communicator_;
  GemmTeam& team_;
  OverlapOwner owner_;
  StreamHandle stream_ = nullptr;
  std::unique_ptr<GemmMatrices> matrices_;  ///< of the last shape
  std::unique_ptr<Overlap> object_;
  std::unique_ptr<StreamGraph> graph_;  ///< of the runs of a batch; none: they are eager
};

}  // namespace mscclc::tune
