// Why a plan is not proved, in a line: for reports that are about something else.
#pragma once

#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc {

/// Proves a plan. "": it is proved; else the first reason why it is not, with its place in
/// `sources`, in one line. REQUIRES: program.split, and its structure is in order. Thread safety:
/// any thread; what is given must not change meanwhile.
std::string why_not_proved(const Program& program, const Sources& sources);

}  // namespace mscclc
