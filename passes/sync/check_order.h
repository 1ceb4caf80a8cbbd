// What `launch auto_sync: false` leaves to the author: every order that `sync` would have added is
// an error, reported at the later op, with the place of the one that it must follow.
#pragma once

#include "ir/program/program.h"
#include "passes/framework/pass.h"

namespace mscclc::order {

/// True if nothing is missing; the program stays as it is.
bool check_order(Program& program, PassContext& context);

/// Reports that op `second` of `rank` must be after op `first`: `what` is missing, and why.
void report_missing_order(const Program& program, uint32_t rank, const Op& first, const Op& second,
                          std::string_view what, std::string_view why, Diagnostics& diagnostics);

}  // namespace mscclc::order
