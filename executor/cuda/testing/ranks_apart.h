// Launches of ranks that have one each, as in a job: on streams of their own, so that ranks run
// side by side; several calls of a rank are queued one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "executor/interpreter/short_steps.h"
#include "executor/launch.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc::cuda {

class RanksApart {
 public:
  using Start = std::function<int(const device::LaunchPlan& plan, void* stream)>;

  void clear() { launches_.clear(); }
  bool empty() const { return launches_.empty(); }
  /// Call number `in_call` of those that are queued at a rank. `start`: a compiled kernel;
  /// none: the interpreter's.
  void add(uint32_t rank, uint32_t in_call, const device::LaunchPlan& plan, Start start);
  /// The same as a short program. `programs`: the plan's, in this process's memory. False: it has
  /// none, and nothing was added.
  [[nodiscard]] bool add_short(uint32_t rank, uint32_t in_call, const device::LaunchPlan& plan,
                               const uint8_t* programs);
  /// Have all ranks short programs?
  bool all_short() const;
  /// Starts all launches but those of rank `silent`, `times` in a row, and waits for their end. On
  /// the stream of each rank before(rank, i) and after(rank, i) come with each time, if they are
  /// functions.
  using Hook = std::function<void(uint32_t rank, uint32_t i)>;
  [[nodiscard]] bool run(uint32_t times, uint32_t silent, const Hook& before, const Hook& after,
                         Diagnostics& diagnostics) const;

 private:
  struct Launch {
    uint32_t rank, in_call;
    device::LaunchPlan plan;
    std::unique_ptr<device::ShortProgram> in_short;
    Start start;
  };
  /// Those of each rank, in order.
  std::map<uint32_t, std::vector<const Launch*>> by_rank() const;

  std::vector<Launch> launches_;
};

}  // namespace mscclc::cuda
