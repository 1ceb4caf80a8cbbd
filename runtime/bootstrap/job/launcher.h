// What runtime/api/launcher.h offers, of an environment that is given.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/api/launcher.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {

/// read_launch() and read_host_options() of runtime/api/launcher.h for any environment.
[[nodiscard]] std::optional<LaunchedRank> read_launch(const Environment& environment,
                                                      std::string_view group,
                                                      Diagnostics& diagnostics);
[[nodiscard]] std::optional<HostOptions> read_host_options(const Environment& environment,
                                                           Diagnostics& diagnostics);

/// The first host of Slurm's list of hosts: "node[07-09,12],gpu1" gives "node07".
std::string first_host(std::string_view list);

}  // namespace mscclc
