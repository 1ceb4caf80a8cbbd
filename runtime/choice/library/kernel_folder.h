// Where kernels lie that were compiled for plans of the library (docs/compiled_kernels.md).
#pragma once

#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {

/// The folder that MSCCLC_KERNEL_PATH names, or that of the package that this code was installed
/// with, without a / at its end; "": none. nullopt: bad-variable, reported.
[[nodiscard]] std::optional<std::string> kernel_folder(const Environment& environment,
                                                       Diagnostics& diagnostics);

/// PREFIX/share/mscclc/kernels for a file in PREFIX/lib/mscclc, PREFIX/lib or PREFIX/bin, if there
/// is such a folder; or "".
std::string installed_kernels(const std::string& file);

}  // namespace mscclc
