// NCCL's configuration files: lines NAME=VALUE, as NCCL reads them.
#pragma once

#include <string_view>

#include "runtime/support/environment/environment.h"

namespace mscclc::nccl {

/// What a variable has; empty: it is not set.
std::string_view value_of(const Environment::Values& values, std::string_view name);

/// Adds what a file's text sets and `values` does not have, of NCCL's variables and ours. A line
/// that begins with '#', or has no '=', sets nothing; blanks count.
void take_lines(std::string_view text, Environment::Values& values);

/// The same of the files themselves: the one that NCCL_CONF_FILE names, or .nccl.conf at HOME, then
/// /etc/nccl.conf. Each is read once in a process. What cannot be read sets nothing, as with NCCL.
void take_files(Environment::Values& values);

}  // namespace mscclc::nccl
