#include "compiler/ast/ast.h"

#include <algorithm>

namespace mscclc::ast {

File* Ast::add_file(FileId id) {
  const std::string_view text = sources_.file(id).text;
  const uint64_t base = files_.empty() ? 0 : files_.back().base + files_.back().text.size() + 1;
  if (text.size() > kMaxFileBytes || base + text.size() >= UINT32_MAX) return nullptr;
  File& file = files_.emplace_back();
  file.id = id;
  file.base = static_cast<uint32_t>(base);
  file.text = text;
  return &file;
}

const File& Ast::file_of(TextRange place) const {
  size_t i = files_.size() - 1;
  while (i > 0 && files_[i].base > place.begin) --i;
  return files_[i];
}

std::string_view Ast::text(TextRange place) const {
  const File& file = file_of(place);
  return file.text.substr(place.begin - file.base, place.end - place.begin);
}

uint32_t File::line_at(uint32_t offset) const {
  if (lines_.empty()) {
    lines_.push_back(0);
    for (size_t at = 0; (at = text.find('\n', at)) != std::string_view::npos;) {
      lines_.push_back(static_cast<uint32_t>(++at));
    }
  }
  // Places are mostly asked for in text order: try the line of last time and the next one.
  const uint32_t last = last_.load(std::memory_order_relaxed);
  for (uint32_t line = last; line < last + 2 && line < lines_.size(); ++line) {
    const bool below = line + 1 == lines_.size() || offset < lines_[line + 1];
    if (lines_[line] > offset || !below) continue;
    last_.store(line, std::memory_order_relaxed);
    return line;
  }
  const auto after = std::upper_bound(lines_.begin(), lines_.end(), offset);
  const uint32_t line = static_cast<uint32_t>(after - lines_.begin() - 1);
  last_.store(line, std::memory_order_relaxed);
  return line;
}

bool mentions(const Expr& e, Symbol name) {
  if (e.kind == ExprKind::name) return e.name.id == name;
  if (e.kind == ExprKind::comprehension) {
    for (const Binder& b : e.loop->binders) {
      if (mentions(b.list, name) || (b.where != nullptr && mentions(*b.where, name))) return true;
    }
    return mentions(e.loop->element, name);
  }
  if (e.count == 0) return false;
  return std::ranges::any_of(e.children(), [&](const Expr& kid) { return mentions(kid, name); });
}

Span Ast::span(TextRange place) const {
  const File& file = file_of(place);
  const uint32_t begin = place.begin - file.base, line = file.line_at(begin);
  return {.file = file.id,
          .begin = begin,
          .end = place.end - file.base,
          .line = line + 1,
          .column = begin - file.line_begin(line) + 1};
}

}  // namespace mscclc::ast
