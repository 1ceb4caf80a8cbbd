// `mscclc run --schedule` of several plans whose calls follow one another on the same ranks.
#pragma once

#include "tools/run/run_work.h"

namespace mscclc {

/// Replays options.schedule with the plans of options.files; returns the exit code.
int run_set_schedule(const RunOptions& options);

}  // namespace mscclc
