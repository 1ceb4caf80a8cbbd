// How much memory a process holds: what operator new has given out and has not been given back.
// Exact, so that a test can ask for no growth at all.
#pragma once

#include <cstdint>

namespace mscclc::testing {

/// Blocks that live now, of all threads.
int64_t live_blocks();

}  // namespace mscclc::testing
