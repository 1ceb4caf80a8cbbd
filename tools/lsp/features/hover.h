// What is shown of a word: of an op its row of the table, of a name what declares it and its
// values.
#pragma once

#include "tools/lsp/language/document.h"
#include "tools/lsp/protocol/json.h"

namespace mscclc::lsp {

/// null: nothing is known of what stands there.
Json hover(Document& document, const Position& position);

}  // namespace mscclc::lsp
