// The warning about rows of scratch that no op touches: memory that is wasted, or a wrong index.
#pragma once

#include "compiler/builder/declare/layouts.h"
#include "compiler/builder/declare/names.h"

namespace mscclc {

/// REQUIRES: a complete program without mistakes.
void warn_of_unused_rows(const Program& program, const Names& names, const Layouts& layouts,
                         Diagnostics& diagnostics);

}  // namespace mscclc
