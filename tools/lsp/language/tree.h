// A document as syntax tree, with what it imports; also while it is being typed: statements
// with syntax errors are left out until the rest can be read.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/resolve/resolve.h"
#include "ir/support/source.h"

namespace mscclc::lsp {

/// Reads an imported file by its path; nullopt: it cannot be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

/// Nothing in it refers to anything outside of it.
struct Tree {
  Sources sources;
  ast::Ast ast{sources};
  const ast::File* main = nullptr;
  /// Items of the document, imports replaced by what they bring in, as far as it can be read.
  std::vector<Item> items;
  bool whole = true;  ///< nothing of the document is left out

  /// Bytes of the document, or nothing if the place is in another file.
  struct Bytes {
    uint32_t begin, end;
  };
  std::optional<Bytes> bytes(ast::TextRange place) const;
  /// The place of a byte of the document.
  uint32_t place_of(size_t byte) const { return main->base + static_cast<uint32_t>(byte); }
};

/// True if a statement that ends a line like this goes on in the next: after a comma, an operator,
/// an open bracket.
bool goes_on(std::string_view line);

/// nullptr if too much of the text cannot be read.
std::unique_ptr<Tree> read_tree(const std::string& path, const std::string& text,
                                const ReadFile& read_file);

}  // namespace mscclc::lsp
