#include "tools/lsp/features/declaration_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostics/printable.h"

namespace mscclc::lsp {
namespace {

constexpr size_t kLongest = 200;

/// The first line of a place.
std::string_view line_of(const Tree& tree, ast::TextRange place) {
  const std::string_view text = tree.ast.text(place);
  return text.substr(0, text.find('\n'));
}

std::string definition_text(const Tree& tree, const Declared& d) {
  const uint32_t begin = d.definition->name.begin;
  const uint32_t end = std::max(begin, d.definition->value.place.end);
  return fmt::format("{} {}", d.kind == Kind::parameter ? "param" : "let",
                     line_of(tree, {begin, end}));
}

std::string statement_text(const Tree& tree, const ast::Stmt& s) {
  std::string_view line = line_of(tree, s.place);
  while (line.ends_with('{') || line.ends_with(' ')) line.remove_suffix(1);
  return std::string(line);
}

}  // namespace

std::string declaration_text(const Tree& tree, const Declared& d) {
  std::string text;
  if (d.definition != nullptr) {
    text = definition_text(tree, d);
  } else if (d.binder != nullptr) {
    text = line_of(tree, d.binder->place);
  } else if (d.statement != nullptr) {
    text = statement_text(tree, *d.statement);
  }
  return beginning(text, kLongest);
}

}  // namespace mscclc::lsp
