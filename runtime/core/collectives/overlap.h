// Where the buffers of a call by name may lie: apart, or as they do in place. A call is cut into
// pieces, so its whole buffers count.
#pragma once

#include <cstdint>

#include "runtime/api/collectives.h"

namespace mscclc {

/// Does what a rank gives begin where what it gets does, as in place? Rows of one side begin at the
/// rank's own. REQUIRES: both buffers are there; no alltoallv.
bool coincide(const CollectiveCall& call, uint32_t rank);

/// Do the rank's buffers overlap otherwise? In place the rows of an alltoallv are the same, at the
/// same places. REQUIRES: the counts, offsets and buffers are sound.
bool overlap(const CollectiveCall& call, uint32_t rank, uint32_t ranks);

}  // namespace mscclc
