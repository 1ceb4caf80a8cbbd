// What the compiler has done to the lines of a program: thread blocks that it chose, syncs and
// semaphores that it added, ops that it joined or left out, and the blocks that use a channel.
#pragma once

#include "tools/lsp/language/document.h"
#include "tools/lsp/protocol/json.h"

namespace mscclc::lsp {

/// Inlay hints within a range; none if the program does not compile.
Json hints(Document& document, const Range& range);

}  // namespace mscclc::lsp
