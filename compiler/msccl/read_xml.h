// Reads MSCCL's XML, as MSCCL's own compiler, TACCL, TE-CCL, ForestColl and RCCL write it.
#pragma once

#include <optional>

#include "compiler/msccl/schedule.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc::msccl {

/// nullopt: reported, at the line in question. Attributes that are not known are warnings.
std::optional<Schedule> read_xml(const Sources& sources, FileId file, Diagnostics& diagnostics);

}  // namespace mscclc::msccl
