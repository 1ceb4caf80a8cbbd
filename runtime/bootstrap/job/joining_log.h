// What the log says of how a rank comes into a job: there is no communicator yet that could.
#pragma once

#include <cstdint>
#include <memory>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/bootstrap.h"

namespace mscclc {

/// Takes MSCCLC_DEBUG of the process's environment. What is wrong with it is reported later, when
/// the communicator is made: then all ranks learn of it.
void begin_joining_log();
/// Logs what has come of it, and hands it on: nullptr, with the errors of `diagnostics`, or a
/// bootstrap.
[[nodiscard]] std::unique_ptr<Bootstrap> logged(std::unique_ptr<Bootstrap> made, uint32_t rank,
                                                const Diagnostics& diagnostics);

}  // namespace mscclc
