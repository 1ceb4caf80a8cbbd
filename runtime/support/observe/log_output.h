// The file of a log, which other users may see coming, and may have prepared.
#pragma once

#include <string>

#include "runtime/support/fd.h"

namespace mscclc {

/// Opens a file to log to, empty; a new one is for this user only. Never waits for the reader of a
/// pipe. `flags`: of open(2), besides. Links are followed where this user has made them, or the
/// system (such as /dev/stderr); others may stand where a log is expected, to have other files
/// overwritten. Invalid: errno says why, or describe_log_error().
[[nodiscard]] Fd open_log(const std::string& name, int flags = 0);
/// Why open_log() failed.
std::string describe_log_error(int error);

}  // namespace mscclc
