// What times runs of GEMMs that overlap with collectives, for `mscclc tune`. Tests have timers of
// their own.
#pragma once

#include <optional>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/overlap.h"
#include "runtime/choice/overlap/measured.h"
#include "tools/measure/call_timer.h"

namespace mscclc::tune {

class GemmTimer {
 public:
  virtual ~GemmTimer() = default;
  /// Makes an object, checks a run's results, then times runs that follow one another, if they were
  /// right. `config` names a backend, and all that it takes. nullopt: it could not be made or run;
  /// reported, and others may be timed unless broken().
  [[nodiscard]] virtual std::optional<CallTime> time(const OverlapConfig& config,
                                                     overlap::RunMode mode,
                                                     Diagnostics& diagnostics) = 0;
  /// A rank hangs or was lost: nothing more can be timed.
  virtual bool broken() const { return false; }
};

}  // namespace mscclc::tune
