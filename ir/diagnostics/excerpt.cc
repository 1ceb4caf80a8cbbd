#include "ir/diagnostics/excerpt.h"

#include <algorithm>

#include "ir/diagnostics/printable.h"

namespace mscclc {
namespace {

constexpr size_t kTabStop = 8;
constexpr size_t kLongLine = 120;   // bytes beyond which only a part of a line is shown
constexpr size_t kBeforeMark = 50;  // bytes of a long line shown in front of the mark
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

struct CodeRange {
  uint32_t first, last;
};
constexpr CodeRange kNoWidth[] = {
    {0x300, 0x36f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};
constexpr CodeRange kWide[] = {
    {0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template <size_t N>
bool within(const CodeRange (&ranges)[N], uint32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [code](const CodeRange& r) { return code >= r.first && code <= r.last; });
}

size_t width_of(uint32_t code) { return within(kNoWidth, code) ? 0 : within(kWide, code) ? 2 : 1; }

/// The bytes of a long line that are shown: the mark and what is round it, whole characters.
struct Window {
  size_t begin, end;
};

Window window_of(std::string_view text, size_t mark) {
  if (text.size() <= kLongLine) return {0, text.size()};
  size_t begin = mark > kBeforeMark ? mark - kBeforeMark : 0;
  while (begin < text.size() && begin > 0 && is_continuation(text[begin])) --begin;
  size_t end = std::min(text.size(), begin + kLongLine);
  while (end < text.size() && is_continuation(text[end])) ++end;
  return {begin, end};
}

/// Text by line number, for places that have no byte offset.
std::string_view line_by_number(std::string_view text, uint32_t line) {
  size_t begin = 0;
  for (uint32_t n = 1; n < line; ++n) {
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos) return {};
    ++begin;
  }
  return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
}

const SourceFile* find_file(const Span& span, std::string_view name, const Sources& sources) {
  if (name.empty()) return span.file < sources.size() ? &sources.file(span.file) : nullptr;
  for (FileId id = 0; id < sources.size(); ++id) {
    if (sources.file(id).name == name) return &sources.file(id);
  }
  return nullptr;
}

/// The end of a span of several lines.
void find_end(std::string_view text, const Span& span, ResolvedPlace& place) {
  if (span.end <= span.begin || span.end > text.size()) return;
  const std::string_view covered = text.substr(span.begin, span.end - span.begin);
  const size_t newline = covered.rfind('\n');
  if (newline == std::string_view::npos) return;
  place.last_line += static_cast<uint32_t>(std::ranges::count(covered, '\n'));
  place.last_column = static_cast<uint32_t>(covered.size() - newline);
}

}  // namespace

std::optional<ResolvedPlace> resolve(const Span& span, std::string_view name,
                                     const Sources& sources) {
  if (!span.valid()) return std::nullopt;
  const SourceFile* file = find_file(span, name, sources);
  ResolvedPlace place{name, span.line, span.column, span.column, span.line, span.column, {}};
  const bool offsets_known = span.begin != 0 || (span.line == 1 && span.column <= 1);
  uint64_t end = uint64_t{span.column} + (span.end - std::min(span.begin, span.end));
  if (file != nullptr) {
    place.file = file->name;
    place.text = offsets_known && name.empty() ? sources.line_of(span)
                                               : line_by_number(file->text, span.line);
    if (place.text.ends_with('\r')) place.text.remove_suffix(1);
    if (!offsets_known) {
      while (end - 1 < place.text.size() && is_word(place.text[end - 1])) ++end;
    }
    end = std::max<uint64_t>(span.column, std::min<uint64_t>(end, place.text.size() + 1));
  }
  place.end_column = static_cast<uint32_t>(end);
  place.last_column = place.end_column;
  if (file != nullptr && offsets_known && name.empty()) find_end(file->text, span, place);
  return place;
}

std::string excerpt(const ResolvedPlace& place) {
  if (place.text.empty() || place.column == 0 || place.column > place.text.size() + 1) return {};
  const size_t mark = place.column - 1;
  const size_t mark_end = std::max<size_t>(place.end_column - 1, mark + 1);
  const Window window = window_of(place.text, mark);
  std::string line, under;
  if (window.begin > 0) line = "...";
  size_t column = line.size();
  under.assign(column, ' ');
  for (size_t at = window.begin; at < window.end;) {
    const Character c = first_character(place.text.substr(at));
    size_t width = 1;
    if (c.code == '\t') {
      width = kTabStop - column % kTabStop;
      line.append(width, ' ');
    } else if (is_control(c)) {
      line += kReplacement;
    } else {
      width = width_of(c.code);
      line += place.text.substr(at, c.bytes);
    }
    under.append(width, at >= mark && at < mark_end ? '~' : ' ');
    if (at <= mark && mark < at + c.bytes) {
      if (width == 0) under += '~';
      under.replace(under.size() - std::max<size_t>(width, 1), std::string::npos, "^");
      under.append(width > 1 ? width - 1 : 0, '~');
    }
    column += width;
    at += c.bytes;
  }
  if (mark >= window.end) under += '^';
  if (window.end < place.text.size()) line += "...";
  under.erase(under.find_last_not_of(' ') + 1);
  return line + '\n' + under + '\n';
}

}  // namespace mscclc
