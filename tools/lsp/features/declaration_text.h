// The declaration of a name as a line of its program.
#pragma once

#include <string>

#include "tools/lsp/language/names.h"

namespace mscclc::lsp {

/// "let others = 0..R except r", "def pass(to, from)", "p in others"; empty: it has none.
std::string declaration_text(const Tree& tree, const Declared& declared);

}  // namespace mscclc::lsp
