// Which machine a plan is predicted for.
#pragma once

#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "plans/format/machines/machine.h"

namespace mscclc::cost {

/// The machine of that name, or of a file; "": the smallest built-in one on which the program can
/// run, or else one that is resized to the program's ranks, of one node if that will do. nullopt:
/// reported, as by find_machine().
[[nodiscard]] std::optional<Machine> machine_for(const Program& program,
                                                 const std::string& name_or_path,
                                                 Diagnostics& diagnostics);

/// The same machine for so many ranks: what is asked is "and on 8 GPUs?". Its name says so.
void resize(Machine& machine, uint32_t ranks);

}  // namespace mscclc::cost
