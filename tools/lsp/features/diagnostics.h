// Diagnostics of a document, as the protocol has them.
#pragma once

#include "tools/lsp/language/document.h"
#include "tools/lsp/protocol/json.h"

namespace mscclc::lsp {

/// What is wrong with each of its sets of parameters: a list, empty if it is proved.
Json diagnostics_of(Document& document);

}  // namespace mscclc::lsp
