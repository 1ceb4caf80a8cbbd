// The reference of environment variables, rendered from the table: the page docs/environment.md and
// the terminal's `mscclc env`.
#pragma once

#include <string>

namespace mscclc {

/// The page docs/environment.md, Markdown.
std::string environment_reference();
/// For a terminal, one paragraph a variable.
std::string environment_text();

}  // namespace mscclc
