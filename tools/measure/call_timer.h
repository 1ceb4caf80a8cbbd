// What times calls of plans for `mscclc calibrate` and `mscclc tune`. Tests have timers of their
// own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/ops.h"
#include "ir/program/program.h"

namespace mscclc {

/// A call that is to be timed, out of place where the contract leaves it open.
struct TimedCall {
  std::shared_ptr<const Program> plan;
  uint64_t bytes = 0;  ///< message size
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  bool nccl = false;  ///< NCCL does what the plan would do
};

struct CallTime {
  double ns = 0;       ///< of a call when calls follow one another; the median of several batches
  uint64_t wrong = 0;  ///< elements of the outputs that are not what the contract promises
  double spread = 0;   ///< of the batches: (largest - smallest) / median
};

class CallTimer {
 public:
  virtual ~CallTimer() = default;
  /// Checks the results of a call, then times calls that follow one another, if they were right.
  /// nullopt: it could not be made; reported, and others may be timed unless broken().
  [[nodiscard]] virtual std::optional<CallTime> time(const TimedCall& call,
                                                     Diagnostics& diagnostics) = 0;
  /// A rank hangs or was lost: nothing more can be timed.
  virtual bool broken() const { return false; }
  /// The NCCL whose calls can be timed: "NCCL 2.28.9 (FILE)"; "": there is none.
  virtual std::string nccl() const { return ""; }
};

}  // namespace mscclc
