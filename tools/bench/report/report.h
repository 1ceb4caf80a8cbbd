// What is made of a record once a run has ended, or from a file: tables, plots, cliffs.
#pragma once

#include <string>

#include "tools/bench/results/result.h"
#include "tools/bench/support/options.h"

namespace mscclc::bench {

/// All tables of a record, as they are printed while it is made.
std::string tables_text(const Record& record, bool best);

/// Draws and looks for cliffs as `options` say, and says which contenders were left out. `text`:
/// what to print. False: something was left out or is wrong, there are cliffs, or a file could not
/// be written.
[[nodiscard]] bool report(const Record& record, const Options& options, std::string& text);

}  // namespace mscclc::bench
