// What may stand at a place: words of the language from its tables, and names that are visible.
#pragma once

#include "tools/lsp/language/document.h"
#include "tools/lsp/protocol/json.h"

namespace mscclc::lsp {

/// A list of items.
Json completion(Document& document, const Position& position);

}  // namespace mscclc::lsp
