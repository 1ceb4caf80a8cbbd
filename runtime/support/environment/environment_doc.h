// The reference of environment variables, rendered from the table: the page docs/environment.md and
// the terminal's `mscclc env`.
#pragma once

#include <string>

#include "runtime/support/environment/environment.h"

namespace mscclc {

/// The page docs/environment.md, Markdown.
std::string environment_reference();
/// For a terminal: what of it is set, then one paragraph a variable.
std::string environment_text(const Environment& environment);

}  // namespace mscclc
