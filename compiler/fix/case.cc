#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/fix/makers.h"

namespace mscclc::fix {
namespace {

/// Without the spaces at its ends.
std::string_view shown(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
  return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

}  // namespace

Case::Case(const Outline& outline, const std::string& file, const Diagnostic& error,
           std::vector<Candidate>& out)
    : outline_(outline), file_(file), error_(error), out_(out), scope_(outline) {
  at_ = byte_of(error.span, error.file);
  add_anchor(error.span, error.file);
  if (error.missing) {
    add_anchor(error.missing->second.span, error.missing->second.file);
    add_anchor(error.missing->first.span, error.missing->first.file);
  }
  for (const Note& note : error.notes) add_anchor(note.span, note.file);
}

uint32_t Case::byte_of(const Span& span, const std::string& file) const {
  if (!span.valid() || (file.empty() ? span.file != 0 : file != file_)) return kNothing;
  return outline_.byte_of(span.line, span.column);
}

void Case::add_anchor(const Span& span, const std::string& file) {
  const uint32_t byte = byte_of(span, file);
  if (byte == kNothing) return;
  const uint32_t s = outline_.statement_at(byte);
  if (s == kNothing || !outline_.in_body(s)) return;
  if (std::ranges::find(anchors_, s) == anchors_.end()) anchors_.push_back(s);
  add_uses(s);
}

/// Of a declaration that is at fault also the ops that name what it declares.
void Case::add_uses(uint32_t declaration) {
  const Statement& s = outline_.statements()[declaration];
  static constexpr std::string_view kWords[] = {"buffer", "channel", "semaphore"};
  if (std::ranges::find(kWords, outline_.keyword(s)) == std::end(kWords)) return;
  if (s.head < s.first + 2) return;
  const std::string_view name = word(s.first + 1);
  for (uint32_t w = s.end; w < outline_.words().size(); ++w) {
    if (word(w) != name) continue;
    const uint32_t use = outline_.statement_at(outline_.words()[w].begin);
    if (use == kNothing || !outline_.in_body(use)) continue;
    if (std::ranges::find(anchors_, use) == anchors_.end()) anchors_.push_back(use);
  }
}

std::vector<uint32_t> Case::around() const {
  std::vector<uint32_t> found = anchors_;
  for (size_t i = 0; i < found.size(); ++i) {
    const uint32_t parent = outline_.statements()[found[i]].parent;
    if (parent == kNothing) continue;
    if (std::ranges::find(found, parent) == found.end()) found.push_back(parent);
  }
  return found;
}

std::vector<uint32_t> Case::neighbours() const {
  std::vector<uint32_t> found;
  for (const uint32_t s : around()) {
    const uint32_t parent = outline_.statements()[s].parent;
    if (parent == kNothing) continue;
    for (const uint32_t other : outline_.block_of(s)) {
      if (std::ranges::find(found, other) == found.end()) found.push_back(other);
    }
  }
  std::ranges::sort(found);
  return found;
}

std::vector<uint32_t> Case::all() const {
  std::vector<uint32_t> found;
  for (uint32_t s = 0; s < outline_.statements().size(); ++s) {
    if (outline_.in_body(s)) found.push_back(s);
  }
  return found;
}

void Case::add(std::string title, std::vector<TextEdit> edits) {
  out_.push_back({std::move(title), std::move(edits)});
}

/// What a line begins with.
std::string Case::line_text(uint32_t byte) const {
  const std::string& text = outline_.text();
  const size_t newline = byte == 0 ? std::string::npos : text.rfind('\n', byte - 1);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return text.substr(begin, byte - begin);
}

void Case::insert_before(uint32_t statement, const std::string& text) {
  const Statement& s = outline_.statements()[statement];
  const uint32_t begin = outline_.begin(s);
  const std::string gap = outline_.begins_line(s) ? outline_.newline() + line_text(begin) : " ; ";
  add(fmt::format("add '{}' before line {}", text, outline_.line_of(begin)),
      {{0, begin, begin, text + gap}});
}

void Case::insert_after(uint32_t statement, const std::string& text) {
  const Statement& s = outline_.statements()[statement];
  const uint32_t begin = outline_.begin(s);
  uint32_t end = outline_.end(s);
  std::string gap = " ; ";
  if (outline_.begins_line(s) && outline_.ends_line(s)) {
    gap = outline_.newline() + line_text(begin);  // a comment stays where it is
    end = static_cast<uint32_t>(
        std::min(outline_.text().find(outline_.newline(), end), outline_.text().size()));
  }
  add(fmt::format("add '{}' after line {}", text, outline_.line_of(outline_.end(s) - 1)),
      {{0, end, end, gap + text}});
}

void Case::erase(uint32_t statement) {
  const Statement& s = outline_.statements()[statement];
  uint32_t begin = outline_.begin(s), end = outline_.end(s);
  if (outline_.begins_line(s) && outline_.ends_line(s)) {
    begin -= static_cast<uint32_t>(line_text(begin).size());
    end = static_cast<uint32_t>(
        std::min(outline_.text().find('\n', end) + 1, outline_.text().size()));
  } else if (kind(s.end) == Tok::semicolon) {
    end = outline_.words()[s.end].end;
  }
  add(fmt::format("leave out '{}' at line {}", outline_.head_text(s),
                  outline_.line_of(outline_.begin(s))),
      {{0, begin, end, ""}});
}

void Case::replace(uint32_t i, const std::string& text) {
  const Word& w = outline_.words()[i];
  add(text.empty() ? fmt::format("leave out '{}'", outline_.text(w))
                   : fmt::format("replace '{}' with '{}'", outline_.text(w), text),
      {{0, w.begin, w.end, text}});
}

void Case::put_before(uint32_t i, const std::string& text) {
  const Word& w = outline_.words()[i];
  add(fmt::format("add '{}' before '{}'", shown(text), outline_.text(w)),
      {{0, w.begin, w.begin, text}});
}

void Case::put_after(uint32_t i, const std::string& text) {
  const Word& w = outline_.words()[i];
  add(fmt::format("add '{}' after '{}'", shown(text), outline_.text(w)), {{0, w.end, w.end, text}});
}

}  // namespace mscclc::fix
