// From errors to changes that may fix them: which makers look at which code.
#pragma once

#include <string>
#include <vector>

#include "compiler/fix/edits.h"
#include "compiler/fix/outline.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc::fix {

/// Is it a mistake in the text? Not what is too large, or beyond the prover.
bool may_be_fixed(const Diagnostic& error);

/// Candidates for the errors in `file`, the likeliest ones first.
std::vector<Candidate> candidates(const Outline& outline, const std::string& file,
                                  const Diagnostics& diagnostics);

}  // namespace mscclc::fix
