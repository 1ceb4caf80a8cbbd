// What callers and users get to know: result codes with a text, ncclGetLastError(), and the lines
// of NCCL_DEBUG in NCCL's shape, which scripts look for:
//
//   host:4711:4713 [0] NCCL INFO allreduce of 4096 bytes: 'allreduce_pair' ...
//
// Thread safety: all of it, from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/doors/nccl/abi/abi.h"

namespace mscclc::nccl {

/// Subsystems of NCCL_DEBUG_SUBSYS that we have lines for.
enum class Subsystem : uint8_t { init, coll, env, reg };

/// Takes NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE from the environment; done at the first
/// line, and again after that only for tests.
void read_debug_settings();

/// True if such INFO lines are written: asking costs one load.
bool informs(Subsystem subsystem);
/// Writes an INFO line, if informs(). `device`: -1 where there is none.
void inform(Subsystem subsystem, int device, std::string_view text);
/// The same, once a process for each text.
void inform_once(Subsystem subsystem, int device, const std::string& text);
/// "NCCL version ..." once a process, from level VERSION on.
void announce_version(int version);

/// Remembers a text for ncclGetLastError(), writes it as a WARN line, and returns the code.
[[nodiscard]] ncclResult_t fail(ncclResult_t code, std::string_view text);
/// The same with the errors of `diagnostics`, and with the code that stands for the first of them.
[[nodiscard]] ncclResult_t fail(std::string_view what, const Diagnostics& diagnostics);
/// The same with `otherwise` where the first error says only that the machine has failed.
[[nodiscard]] ncclResult_t fail(ncclResult_t otherwise, std::string_view what,
                                const Diagnostics& diagnostics);
/// NCCL's code for the first error; ncclInternalError if there is none.
ncclResult_t result_of(const Diagnostics& diagnostics);
/// Writes a WARN line, once a process for each text, whatever NCCL_DEBUG says: a setting has no
/// effect, where NCCL, too, takes any.
void warn_of_setting(const std::string& text);
/// The same for NCCL's variables that have no effect on plans; and a line, once, of those that
/// have.
void warn_of_settings();
/// The last text of the process, for ncclGetLastError().
std::string last_error();
/// ncclGetErrorString(): NCCL's own words.
const char* error_string(ncclResult_t code);

/// "2.28.9" of 22809.
std::string version_text(int version);

}  // namespace mscclc::nccl
