// Values of names, as hover shows them: of a parameter its value, of a loop variable all its
// values, of a 'let' within a loop a few, each with the loop variables that it belongs to.
#pragma once

#include <string>

#include "tools/lsp/language/names.h"
#include "tools/lsp/language/parameters.h"

namespace mscclc::lsp {

/// "8", "0..8", "[1, 2, 3] when r = 0; …"; empty: not known.
/// REQUIRES: `names` are those of the tree.
std::string values_of(Tree& tree, const Names& names, const Declared& declared,
                      const Defines& defines);

}  // namespace mscclc::lsp
