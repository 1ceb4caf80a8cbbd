// Changes of a whole document: its canonical form, and a patch after which it is proved.
#pragma once

#include <string>

#include "tools/lsp/language/document.h"
#include "tools/lsp/protocol/json.h"

namespace mscclc::lsp {

/// Edits that bring it into canonical form; null if it has syntax errors.
Json formatting(Document& document);

/// What a search for a patch has found.
struct FoundPatch {
  Json edits;         ///< null: none is found
  std::string title;  ///< what they do, or why there are none
};
FoundPatch find_patch(Document& document);

}  // namespace mscclc::lsp
