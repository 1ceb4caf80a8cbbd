// Ranks make one object together: before anything is loaded, each learns whether all want the same,
// and whether all are able to.
#pragma once

#include <string>

#include "runtime/api/bootstrap.h"
#include "runtime/core/overlap/config.h"

namespace mscclc::overlap {

/// Collective. `why_not`: why this rank cannot do its part; "": it can. False: reported
/// (options-differ, with both values; peer-failed), on all ranks.
[[nodiscard]] bool agree(Bootstrap& bootstrap, const NamedValues& own, const std::string& why_not,
                         Diagnostics& diagnostics);

}  // namespace mscclc::overlap
