// How compiled kernels are called: by the plan, the shape of the rank's blocks, what is added
// up, and the device code that they were compiled with. So a kernel that is found by its name is
// the right one.
#pragma once

#include <string>

#include "ir/ops/dtypes.h"

namespace mscclc {

class CompiledShape;

/// The name of the kernel that runs calls of `dtype`. `digest`: the plan's, in hex.
std::string kernel_name(const std::string& digest, const CompiledShape& shape, Dtype dtype);

/// "allreduce.sm_90.cubin" for "allreduce.json" on "sm_90".
std::string kernel_file(const std::string& plan_file, const std::string& architecture);

}  // namespace mscclc
