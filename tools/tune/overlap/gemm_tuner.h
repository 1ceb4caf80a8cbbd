// Looks for the fastest way to make the runs of a GEMM that overlaps with a collective.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/tune/overlap/gemm_timer.h"
#include "tools/tune/overlap/ways.h"

namespace mscclc::tune {

/// A way that was timed.
struct GemmTime {
  GemmWay way;
  double ns = 0;  ///< of a run
};

/// Ways in which ranks have waited in vain, or one was lost; and why.
using HungWays = std::vector<std::pair<GemmWay, std::string>>;

/// What came of a shape.
struct GemmResult {
  OverlapConfig shape;
  uint32_t ranks = 0;
  overlap::RunMode mode = overlap::RunMode::eager;
  std::vector<GemmTime> times = {};     ///< of all that was right, `serial` first
  GemmTime best = {};                   ///< `serial`, if nothing is faster; 0 ns: that has no time
  std::vector<std::string> wrong = {};  ///< ways whose results were not right
  std::vector<std::string> left_out = {};  ///< ways that could not be timed, and why

  /// 0: none.
  double serial_ns() const;
};

class GemmTuner {
 public:
  /// `facts`: of the device and the job. `hung`: ways that are left out; one more where tune()
  /// ends.
  GemmTuner(GemmTimer& timer, const overlap::ChoiceFacts& facts, HungWays& hung)
      : timer_(timer), facts_(facts), hung_(hung) {}

  /// Times all ways in turn; then those that are about as fast as the fastest, and `serial`,
  /// several times in turn. What is faster than `serial` by kGain is better. nullopt: a
  /// rank hangs or was lost, and the timer is of no more use. REQUIRES: check_config().
  [[nodiscard]] std::optional<GemmResult> tune(const OverlapConfig& shape, overlap::RunMode mode);

 private:
  struct WayTurn;
  bool try_all(GemmResult& result);
  static bool add_close(GemmResult& result, std::vector<WayTurn>& turns);
  bool compare(GemmResult& result);
  bool take_turns(GemmResult& result, std::vector<WayTurn>& turns);
  std::optional<double> try_out(GemmResult& result, const GemmWay& way);

  GemmTimer& timer_;
  const overlap::ChoiceFacts facts_;
  HungWays& hung_;
};

}  // namespace mscclc::tune
