// One rank's part of `mscclc run` on a device: loads the plan, makes the calls, and
// exchanges what it has seen with the others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/device.h"
#include "tools/io/input.h"
#include "tools/run/run_work.h"

namespace mscclc {

/// Which ranks print why a call was refused. Under a launcher all ranks do, as each may be looked
/// at alone.
enum class Speaker { rank_0, all };

/// Collective. Rank 0 prints the table under a heading that says `how`; every rank prints what went
/// wrong there if it cannot inform the others, or if `who` says so. Returns the exit code.
int run_rank(const RunOptions& options, Input& input, const std::vector<RunSpec>& specs,
             std::unique_ptr<Bootstrap> bootstrap, std::shared_ptr<Device> device,
             std::chrono::milliseconds timeout, const std::string& how, Speaker who);

}  // namespace mscclc
