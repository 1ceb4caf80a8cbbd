// Writes a plan as CUDA source: a kernel for each shape that its ranks have, and for each type that
// it adds up.
//
//   CompiledKernels kernels = *write_kernels(plan, hex(digest), dtypes, diagnostics);
//   // kernels.source includes kernel_header_name(), whose text is kernel_header().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc {

/// The data types whose sums get kernels unless others are asked for.
std::span<const Dtype> usual_kernel_dtypes();

/// Are there kernels for sums of this type?
bool has_kernels(Dtype dtype);

/// CUDA source of a plan's kernels. `digest`: the plan's, in hex. Errors: no-compiled-kernel, and
/// what lowering finds.
[[nodiscard]] std::optional<std::string> write_kernels(const Program& program,
                                                       const std::string& digest,
                                                       std::span<const Dtype> dtypes,
                                                       Diagnostics& diagnostics);

/// What the source includes: the machine of these kernels, in one file that needs no other.
std::string_view kernel_header();
inline constexpr const char* kKernelHeader = "mscclc_kernels.cuh";

/// What that includes, for a compiler without the standard library (NVRTC): one header, and the
/// names under which it is included.
std::string_view standard_header();
std::span<const char* const> standard_names();
inline constexpr const char* kStandardHeader = "mscclc_standard.cuh";

}  // namespace mscclc
