// From a name to its declaration and its uses, and its change.
#pragma once

#include <optional>
#include <string>

#include "tools/lsp/language/document.h"
#include "tools/lsp/protocol/json.h"

namespace mscclc::lsp {

/// Where the name is declared: a list of locations, which may be in imported files.
Json definition(Document& document, const Position& position);
/// Where the name stands, in this document and in what it imports.
Json references(Document& document, const Position& position, bool with_declaration);
/// The same as places of this document alone.
Json highlights(Document& document, const Position& position);
/// Names of the document, those of a rank or a function within it.
Json symbols(Document& document);

/// The range of the name if it can be changed; else null.
Json prepare_rename(Document& document, const Position& position);
struct Renamed {
  Json edit;          ///< a WorkspaceEdit
  std::string error;  ///< not empty: why it cannot be done
};
/// Changes a name where it stands. The result is compiled: a name that means something else there
/// is refused.
Renamed rename(Document& document, const Position& position, const std::string& name);

}  // namespace mscclc::lsp
