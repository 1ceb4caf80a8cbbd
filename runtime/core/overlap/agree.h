// Ranks make one object together: before anything is loaded, each learns whether all want the same,
// and whether all are able to.
#pragma once

#include "runtime/api/bootstrap.h"
#include "runtime/core/overlap/config.h"

namespace mscclc::overlap {

/// Names of values begin with it that say what a rank has chosen itself.
inline constexpr const char* kTaken = "backend that is taken";

/// Collective. `problems`: this rank's; with an error among them it cannot do its part. False:
/// reported (those; options-differ, with both values; peer-failed), on all ranks.
[[nodiscard]] bool agree(Bootstrap& bootstrap, const NamedValues& own, const Diagnostics& problems,
                         Diagnostics& diagnostics);

}  // namespace mscclc::overlap
