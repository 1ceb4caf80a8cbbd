// Evidence against a refused plan: a schedule that goes wrong on the host machine.
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"
#include "passes/prove/prove.h"

namespace mscclc {

/// Looks for a schedule under which `program` gives wrong data or hangs, writes it to `path`, and
/// prints how to replay it, or that none was found. `replay`: the command that does, without the
/// schedule. `json`: prints it as one object on standard error, the schedule in it. False: the file
/// cannot be written (told).
bool show_witness(const Program& program, const std::vector<Unordered>& unordered,
                  const std::string& path, const std::string& replay, bool json);

}  // namespace mscclc
