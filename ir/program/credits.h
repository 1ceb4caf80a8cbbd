// What loops may do before others have to follow: the credits of a program's pipelines.
#pragma once

#include <cstdint>

#include "ir/program/program.h"

namespace mscclc {

/// So many rounds of its pipelines that units of scratch are used again, and that no process has
/// credit left, be it handed on over all ranks: what semaphores and channels begin with, and what
/// is signalled and released outside pipelines. A heuristic of searches; no proof rests on it.
uint64_t rounds_beyond_credits(const Program& program);

}  // namespace mscclc
