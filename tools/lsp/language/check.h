// What the compiler and the prover say of a document.
#pragma once

#include <optional>
#include <string>

#include "compiler/unroll/front_end_options.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "ir/support/source.h"
#include "tools/lsp/language/parameters.h"
#include "tools/lsp/language/tree.h"

namespace mscclc::lsp {

struct Checked {
  Sources sources;  ///< file 0 is the document
  Diagnostics diagnostics;
  std::optional<Program> program;  ///< after all passes; nothing if it does not compile
  bool proved = false;
};

/// Ops that a document may unroll to; a larger one is too slow to check at each change.
inline constexpr uint64_t kMaxOps = 1'000'000;

/// The options that a document is compiled with.
FrontEndOptions front_end(const Defines& defines, const ReadFile& read_file, uint64_t most_ops);

/// True if the tree holds only what other programs import: it has neither ranks nor a collective.
bool is_for_import(const Tree& tree);

/// Compiles and proves a document. One for import is only looked at for mistakes in its names.
/// `tree`: of the same text, or nullptr.
Checked check(const std::string& path, const std::string& text, Tree* tree,
              const FrontEndOptions& front);

}  // namespace mscclc::lsp
