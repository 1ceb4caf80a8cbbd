// Times of GEMMs that overlap on this machine's GPUs, or on the host device, whose ranks are
// threads of this process.
#pragma once

#include <memory>
#include <string>

#include "tools/measure/rank_team.h"
#include "tools/tune/overlap/gemm_timer.h"

namespace mscclc::tune {

class TeamGemmTimer : public GemmTimer {
 public:
  /// NCCL is the one that the process finds, if TeamOptions::nccl; where TeamOptions::graphs, runs
  /// can be captured. nullptr: reported.
  [[nodiscard]] static std::unique_ptr<TeamGemmTimer> start(const TeamOptions& options,
                                                            Diagnostics& diagnostics);
  ~TeamGemmTimer() override;
  TeamGemmTimer(const TeamGemmTimer&) = delete;
  TeamGemmTimer& operator=(const TeamGemmTimer&) = delete;

  [[nodiscard]] std::optional<CallTime> time(const OverlapConfig& config, overlap::RunMode mode,
                                             Diagnostics& diagnostics) override;
  bool broken() const override;

  /// Thread blocks that run at once on the device of rank 0; 0: as many as there are.
  uint32_t multiprocessors() const;
  /// The device of rank 0, for reports.
  const std::string& device() const;
  /// "": NCCL is there.
  const std::string& why_no_nccl() const;

 private:
  struct State;
  explicit TeamGemmTimer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mscclc::tune
