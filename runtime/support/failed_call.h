// System calls that failed, as diagnostics.
#pragma once

#include <fmt/format.h>

#include <cerrno>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/fd.h"

namespace mscclc {

/// Reports the system call that has just failed: `what`, formatted, and what errno says, such as
/// "cannot offer descriptor 3: Too many open files (24)". The code is no-descriptors if that is the
/// cause, otherwise `code`.
template <class... Args>
void report_failed_call(Diagnostics& diagnostics, const char* code,
                        fmt::format_string<const Args&...> what, const Args&... args) {
  const int error = errno;  // what follows may change it
  diagnostics.error(code_of(error, code), {},
                    fmt::format(what, args...) + ": " + error_text(error));
}

}  // namespace mscclc
