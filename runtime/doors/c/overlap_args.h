// What C callers say of GEMMs that overlap, as the runtime's.
#pragma once

#include "ir/support/result.h"
#include "runtime/api/overlap.h"
#include "runtime/doors/c/mscclc.h"

namespace mscclc::capi {

/// Without the provider. The error says which member is wrong.
Result<OverlapConfig> config_of(const mscclc_overlap_config_t& given);
/// `weights`: of the object. The error says which member is wrong.
Result<OverlapCall> overlap_call_of(const mscclc_overlap_call_t& given, uint32_t weights);

}  // namespace mscclc::capi
