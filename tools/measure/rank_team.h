// Ranks as threads of this process, on GPUs or on the host device, that stay for many plans: what
// `mscclc calibrate` and `mscclc tune` measure with. Calls follow one another, launched one by one
// or in CUDA graphs, or stand between other kernels.
//
//   auto team = RankTeam::start({.ranks = 2}, diagnostics);
//   auto taken = team->time({.plan = plan, .bytes = 4096}, diagnostics);
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "ir/support/link_kind.h"
#include "tools/measure/call_timer.h"
#include "tools/run/rank_device.h"

namespace mscclc {

struct TeamOptions {
  uint32_t ranks = 2;
  RankDevices devices = {};
  /// Batches of calls, each of about so long.
  uint32_t batches = 5;
  std::chrono::microseconds batch{3000};
  bool graphs = false;   ///< calls are captured in CUDA graphs, unless they go through ports; GPUs
  bool between = false;  ///< each call stands between kernels that use its buffers
  bool nccl = false;     ///< NCCL is looked for, so that its calls can be timed, too
};

class RankTeam : public CallTimer {
 public:
  /// nullptr: reported.
  [[nodiscard]] static std::unique_ptr<RankTeam> start(const TeamOptions& options,
                                                       Diagnostics& diagnostics);
  ~RankTeam() override;
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;

  [[nodiscard]] std::optional<CallTime> time(const TimedCall& call,
                                             Diagnostics& diagnostics) override;
  bool broken() const override;

  uint32_t ranks() const;
  /// Communicator::worst_link(): what joins the ranks of a node.
  LinkKind links() const;
  /// Thread blocks that run at once on the device of rank 0; 0: as many as there are.
  uint32_t multiprocessors() const;
  /// The device of rank 0, for reports.
  const std::string& device() const;
  std::string nccl() const override;
  /// REQUIRES: there is none.
  std::string why_no_nccl() const;
  /// How calls are launched, in words: "one by one".
  std::string launches() const;

 private:
  struct State;
  explicit RankTeam(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mscclc
