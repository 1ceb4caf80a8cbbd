#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ast/symbols.h"
#include "compiler/fix/edits.h"
#include "ir/diagnostics/printable.h"
#include "tools/lsp/features/navigate.h"
#include "tools/lsp/features/word.h"

namespace mscclc::lsp {
namespace {

bool is_name(const std::string& text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  if (!std::ranges::all_of(text, is_word_character)) return false;
  ast::Names words;
  return !ast::is_reserved(words.intern(text));
}

/// What cannot be changed at a place, or nothing.
std::optional<std::string> refusal(Document& document, const Use* use) {
  if (!document.is_current()) return "the program has syntax errors";
  if (use == nullptr) return "there is no name that is declared";
  if (document.names()->all()[use->declared].kind == Kind::callers) {
    return "'input' and 'output' are the caller's";
  }
  for (const Use& other : document.names()->uses_of(use->declared)) {
    if (other.declares && !document.tree()->bytes(other.place)) {
      return "it is declared in an imported file";
    }
  }
  return std::nullopt;
}

std::vector<TextEdit> edits_of(Document& document, uint32_t declared, const std::string& name) {
  std::vector<TextEdit> edits;
  for (const Use& use : document.names()->uses_of(declared)) {
    const auto bytes = document.tree()->bytes(use.place);
    if (bytes) edits.push_back({0, bytes->begin, bytes->end, name});
  }
  return edits;
}

/// Do the same names stand in the same order, each declared where it was?
bool same_names(const Names& a, const Names& b) {
  return std::ranges::equal(a.uses(), b.uses(), [](const Use& x, const Use& y) {
    return x.declared == y.declared && x.declares == y.declares;
  });
}

/// The codes of a document's errors, with the parameters' defaults: -D in a comment may have the
/// old name.
std::vector<std::string> mistakes(Document& document) {
  const Checked checked = document.checked_with({});
  std::vector<std::string> codes;
  for (const Diagnostic& d : checked.diagnostics.all()) {
    if (d.severity == Severity::error) codes.push_back(d.code);
  }
  std::ranges::sort(codes);
  return codes;
}

/// Does the program say the same with the other name?
bool is_same(Document& document, const std::string& renamed, const Surroundings& surroundings) {
  Document other(document.uri(), renamed, surroundings);
  if (!other.is_current() || other.tree()->whole != document.tree()->whole) return false;
  if (!same_names(*document.names(), *other.names())) return false;
  return mistakes(document) == mistakes(other);
}

}  // namespace

Json prepare_rename(Document& document, const Position& position) {
  const Use* use = document.use_at(position);
  if (refusal(document, use)) return nullptr;
  const auto bytes = *document.tree()->bytes(use->place);
  return to_json(document.lines().range(bytes.begin, bytes.end));
}

Renamed rename(Document& document, const Position& position, const std::string& name) {
  const Use* use = document.use_at(position);
  if (const auto why = refusal(document, use)) return {{}, *why};
  if (!is_name(name)) return {{}, fmt::format("'{}' is not a name", beginning(name, 40))};
  const std::vector<TextEdit> edits = edits_of(document, use->declared, name);
  if (!is_same(document, fix::patched(document.text(), edits), document.surroundings())) {
    return {{}, fmt::format("'{}' means something else where the name stands", name)};
  }
  Json changes = Json::array();
  for (const TextEdit& edit : edits) {
    changes.push_back(
        {{"range", to_json(document.lines().range(edit.begin, edit.end))}, {"newText", name}});
  }
  return {{{"changes", {{document.uri(), changes}}}}, ""};
}

}  // namespace mscclc::lsp
