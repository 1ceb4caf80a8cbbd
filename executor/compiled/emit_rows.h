// The row functions of a plan in the source of its kernels (compiled_rows.cuh runs them).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "executor/compiled/shape.h"

namespace mscclc {

/// May a kernel's rows be of this type? What they need of it a call is asked, too (row-call).
bool has_rows_of(const Program& program, Dtype dtype);

/// The functions that some shape applies, for each of these types that rows may have; "": none.
std::string row_functions_text(const Program& program, std::span<const CompiledShape> shapes,
                               std::span<const Dtype> dtypes);

/// Is it a step of family rows?
bool has_row_function(const CompiledStep& step);

/// How such a step begins, of a block with so many threads: "apply<RowFunction0<...>, 512, ".
std::string row_step_text(const CompiledStep& step, uint32_t threads);

}  // namespace mscclc
