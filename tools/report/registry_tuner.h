// What a registry picks, as lines of NCCL's tuner file (MSCCLC_TUNER_FILE): to be changed by hand,
// or to hold a choice while plans come and go.
#pragma once

#include <string>
#include <vector>

#include "runtime/api/tuner_csv.h"
#include "tools/report/registry_coverage.h"

namespace mscclc {

struct TunerChoices {
  std::vector<TunerLine> lines;
  std::vector<std::string> left_out;  ///< calls, and why there is no line for them
};

/// A line holds for calls of every type, placement and root, so there is one only where all of
/// these get the same plan; other calls are picked for as usual.
TunerChoices tuner_choices(const Coverage& coverage);

}  // namespace mscclc
