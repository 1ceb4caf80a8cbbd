// The reference of ops, data types and packet formats, rendered from the tables: the page
// docs/ops.md and the terminal's `mscclc ops`.
#pragma once

#include <span>
#include <string>

#include "ir/ops/ops.h"

namespace mscclc {

/// The page docs/ops.md, Markdown.
std::string ops_reference();
/// The table of ops for a terminal, a line each.
std::string ops_table_text();
/// Ops for a terminal, one paragraph each; all of them if `only` is empty.
std::string ops_text(std::span<const OpKind> only = {});

}  // namespace mscclc
