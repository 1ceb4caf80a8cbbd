// Kernels of plans (executor/compiled): what 'mscclc compile --emit=cuda', '--emit=cubin' and
// 'mscclc library --kernels' have in common.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "runtime/devices/kernels/cubin_compiler.h"
#include "tools/io/command_line.h"

namespace mscclc {

/// A plan's kernels as CUDA source. Errors: no-compiled-kernel.
[[nodiscard]] std::optional<std::string> kernel_source(const Program& program,
                                                       std::span<const Dtype> dtypes,
                                                       Diagnostics& diagnostics);

/// Writes CUDA source to a file, and the header that it includes beside it. "-": the source alone.
Result<void> write_kernel_source(const std::string& source, const std::string& output);

/// The libnvrtc that MSCCLC_NVRTC names; without that nvcc, or else a libnvrtc that is found.
Result<std::unique_ptr<CubinCompiler>> find_cubin_compiler();

/// As CLI11 asks for it: "" for the name of an architecture that nvcc may know ("sm_90"), else what
/// is wrong.
std::string check_architecture(const std::string& architecture);

/// `mscclc library` with its option --kernels, which compiles kernels of the plans that it writes.
void add_library_with_kernels(CommandLine& line);

}  // namespace mscclc
