// Runs the language server over two streams until it is asked to end.
#pragma once

#include "tools/lsp/language/tree.h"

namespace mscclc::lsp {

/// Reads from the descriptor `in` and writes to `out`. Returns the exit code: 0 after 'shutdown'
/// and 'exit'; 1 if a stream ends or breaks before.
int serve(int in, int out, ReadFile read_file);

}  // namespace mscclc::lsp
