// The ranks of a plan as MSCCL++'s executor reads them.
#pragma once

#include <string>

#include "compiler/mscclpp/program.h"
#include "plans/format/json/json_writer.h"

namespace mscclc::mscclpp {

/// The list "gpus" of the plan, as it stands one level deep. REQUIRES: run_passes() and checks were
/// fine.
std::string write_gpus(const Program& program, JsonLayout layout);

/// Where the ops of the plan come from, for each rank, and each of its thread blocks in one
/// instance:
///
///   ops { place  1 + (ops of the pipeline), or 0: it is none  { place } }
///
/// after the number of the rank's thread blocks. An op without a place has kNoPythonCall.
std::vector<uint64_t> write_places(const Program& program);

}  // namespace mscclc::mscclpp
