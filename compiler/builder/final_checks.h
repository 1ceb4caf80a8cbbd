// The checks that need the whole program: bodies, balance of signals, semaphores and barriers,
// blocks without ops, promises.
#pragma once

#include "compiler/builder/builder_state.h"

namespace mscclc {

/// Reports what is wrong, or looks wrong; false after mistakes.
bool make_final_checks(BuilderState& state);

}  // namespace mscclc
