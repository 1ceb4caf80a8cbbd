#include "tools/lsp/features/hover.h"

#include <fmt/format.h>

#include <string>

#include "ir/ops/ops_doc.h"
#include "tools/lsp/features/declaration_text.h"
#include "tools/lsp/features/word.h"
#include "tools/lsp/language/values.h"

namespace mscclc::lsp {
namespace {

/// What the tables say of a word of the language; empty: nothing.
std::string word_text(std::string_view word) {
  if (const auto op = find_op(word)) {
    const OpKind ops[] = {*op};
    return fmt::format("```text\n{}```", ops_text(ops));
  }
  if (const auto format = find_packet_format(word); format && *format != PacketFormat::none) {
    const PacketFormatInfo& row = info(*format);
    return fmt::format("packet format `{}`: {}; {} bytes of data in {}", row.name, row.summary,
                       row.data, row.wire);
  }
#define ORDER(name, summary) \
  if (word == #name) return "order `" #name "`: " summary;
#include "ir/contract/orders.def"
#undef ORDER
  return "";
}

std::string name_text(Document& document, const Declared& d) {
  const Names& names = *document.names();
  std::string text = fmt::format("{} `{}`", name_of(d.kind), names.tree().ast.text(d.symbol));
  const std::string declaration = declaration_text(names.tree(), d);
  if (!declaration.empty()) text += fmt::format("\n```mscl\n{}\n```", declaration);
  const Defines defines = document.parameter_sets().front().defines;
  const std::string values = values_of(*document.tree(), names, d, defines);
  if (values.empty()) return text;
  return text + fmt::format("\n{}: `{}`", d.kind == Kind::variable ? "values" : "value", values);
}

Json shown(const std::string& text, const Range& range) {
  return {{"contents", {{"kind", "markdown"}, {"value", text}}}, {"range", to_json(range)}};
}

}  // namespace

Json hover(Document& document, const Position& position) {
  const size_t byte = document.lines().byte(position);
  if (const Use* use = document.use_at(position)) {
    const auto bytes = *document.tree()->bytes(use->place);
    return shown(name_text(document, document.names()->all()[use->declared]),
                 document.lines().range(bytes.begin, bytes.end));
  }
  const Word word = word_at(document.text(), byte);
  const std::string text = word_text(word.text);
  if (text.empty()) return nullptr;
  return shown(text, document.lines().range(word.begin, word.begin + word.text.size()));
}

}  // namespace mscclc::lsp
