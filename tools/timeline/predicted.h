// The timeline of a call as the cost model predicts it.
#pragma once

#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "plans/format/machines/machine.h"
#include "tools/timeline/trace.h"

namespace mscclc::timeline {

/// Predicts a call with its arrows. Errors: those of cost::Model::predict(), and too-large.
[[nodiscard]] std::optional<cost::Timeline> predict(const Program& program, const Call& call,
                                                    const Machine& machine,
                                                    Diagnostics& diagnostics);
Trace predicted_trace(const cost::Timeline& timeline, const Machine& machine);
/// What a slice has of its step, the record of that number; its times are left out.
Slice step_of(const cost::StepRecord& r, uint32_t record);

/// "allreduce_2shot: allreduce of 1 MiB (f32) over 8 ranks"
std::string title_of(const Program& program, const Call& call);

}  // namespace mscclc::timeline
