#include "tools/lsp/protocol/lines.h"

#include <algorithm>

#include "ir/diagnostics/printable.h"

namespace mscclc::lsp {
namespace {

/// UTF-16 code units of a character.
uint32_t units(const Character& c) { return c.code >= 0x10000 ? 2 : 1; }

}  // namespace

Lines::Lines(std::string_view text) : text_(text), begins_{0} {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool pair = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if ((text[i] == '\n' || text[i] == '\r') && !pair) begins_.push_back(i + 1);
  }
}

size_t Lines::line_end(size_t line) const {
  if (line + 1 == begins_.size()) return text_.size();
  size_t end = begins_[line + 1] - 1;
  if (text_[end] == '\n' && end > begins_[line] && text_[end - 1] == '\r') --end;
  return end;
}

Position Lines::position(size_t byte) const {
  byte = std::min(byte, text_.size());
  const auto after = std::ranges::upper_bound(begins_, byte);
  const auto line = static_cast<size_t>(after - begins_.begin()) - 1;
  Position out{static_cast<uint32_t>(line), 0};
  for (size_t at = begins_[line]; at < std::min(byte, line_end(line));) {
    const Character c = first_character(text_.substr(at));
    at += c.bytes;
    if (at <= byte) out.character += units(c);
  }
  return out;
}

size_t Lines::byte(const Position& position) const {
  if (position.line >= begins_.size()) return text_.size();
  const size_t end = line_end(position.line);
  size_t at = begins_[position.line];
  uint32_t left = position.character;
  while (at < end && left > 0) {
    const Character c = first_character(text_.substr(at));
    if (units(c) > left) break;
    left -= units(c);
    at += c.bytes;
  }
  return at;
}

size_t Lines::byte_of(uint32_t line, uint32_t column) const {
  size_t at = 0;
  for (uint32_t n = 1; n < line; ++n) {
    const size_t newline = text_.find('\n', at);
    if (newline == std::string_view::npos) return text_.size();
    at = newline + 1;
  }
  const size_t end = std::min(text_.find('\n', at), text_.size());
  return std::min(at + (column == 0 ? 0 : column - 1), end);
}

Json to_json(const Position& position) {
  return {{"line", position.line}, {"character", position.character}};
}

Json to_json(const Range& range) {
  return {{"start", to_json(range.start)}, {"end", to_json(range.end)}};
}

std::optional<Position> position_of(const Json& json) {
  const auto line = number_of(json, "line", UINT32_MAX);
  const auto character = number_of(json, "character", UINT32_MAX);
  if (!line || !character) return std::nullopt;
  return Position{static_cast<uint32_t>(*line), static_cast<uint32_t>(*character)};
}

std::optional<Range> range_of(const Json& json) {
  const auto start = position_of(member(json, "start"));
  const auto end = position_of(member(json, "end"));
  if (!start || !end) return std::nullopt;
  return Range{*start, *end};
}

}  // namespace mscclc::lsp
