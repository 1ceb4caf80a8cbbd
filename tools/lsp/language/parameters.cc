#include "tools/lsp/language/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace mscclc::lsp {
namespace {

constexpr std::string_view kMark = "mscclc:";

std::string_view without_blanks(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// What follows "# mscclc:", if the line is such a comment.
std::optional<std::string_view> asked_for(std::string_view line) {
  line = without_blanks(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = without_blanks(line.substr(std::min(line.find_first_not_of('#'), line.size())));
  if (!line.starts_with(kMark)) return std::nullopt;
  return line.substr(kMark.size());
}

/// "-D R=4 -DB=2"; what is no -D is taken for a value that is wrong, and reported as that.
Defines parse(std::string_view text) {
  Defines defines;
  for (text = without_blanks(text); !text.empty(); text = without_blanks(text)) {
    if (text.starts_with("-D")) text = without_blanks(text.substr(2));
    const size_t end = std::min(text.find_first_of(" \t"), text.size());
    const std::string_view word = text.substr(0, end);
    const size_t equals = std::min(word.find('='), word.size());
    defines.emplace_back(word.substr(0, equals), word.substr(std::min(equals + 1, word.size())));
    text.remove_prefix(end);
  }
  return defines;
}

bool is_parameter(const Tree& tree, const std::string& name) {
  return std::ranges::any_of(tree.items, [&](const Item& item) {
    if (item.stmt->kind != ast::StmtKind::param) return false;
    return std::ranges::any_of(item.stmt->as<ast::Let>().definitions,
                               [&](const auto& d) { return tree.ast.text(d.name) == name; });
  });
}

}  // namespace

std::vector<ParameterSet> parameter_sets(const std::string& text, const Tree* tree,
                                         const std::map<std::string, std::string>& settings) {
  std::vector<ParameterSet> sets;
  size_t line = 0;
  for (size_t at = 0; at < text.size() && sets.size() <= kMaxSets; ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const auto asked = asked_for(std::string_view(text).substr(at, end - at));
    if (asked) sets.push_back({parse(*asked), line});
    at = end + 1;
  }
  if (!sets.empty()) return sets;
  ParameterSet& set = sets.emplace_back();
  for (const auto& [name, value] : settings) {
    if (tree != nullptr && is_parameter(*tree, name)) set.defines.emplace_back(name, value);
  }
  return sets;
}

std::string text_of(const Defines& defines) {
  std::string text;
  for (const auto& [name, value] : defines) {
    text += fmt::format("{}-D {}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

}  // namespace mscclc::lsp
