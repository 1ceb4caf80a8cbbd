#include "compiler/fix/edits.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/precondition.h"

namespace mscclc::fix {
namespace {

/// Lines with their ends.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

/// Lines [before, before + removed) become [after, after + added).
struct Hunk {
  size_t before = 0, removed = 0, after = 0, added = 0;
};

/// The longest common subsequence of what lies between the lines that both begin and end with.
class LineDiff {
 public:
  LineDiff(std::string_view before, std::string_view after)
      : a_(lines_of(before)), b_(lines_of(after)) {}

  const std::vector<std::string_view>& before() const { return a_; }
  const std::vector<std::string_view>& after() const { return b_; }

  std::vector<Hunk> hunks() {
    size_t head = 0, tail = 0;
    const size_t shorter = std::min(a_.size(), b_.size());
    while (head < shorter && a_[head] == b_[head]) ++head;
    while (tail < shorter - head && a_[a_.size() - 1 - tail] == b_[b_.size() - 1 - tail]) ++tail;
    rows_ = a_.size() - head - tail;
    columns_ = b_.size() - head - tail;
    if (rows_ + columns_ == 0) return {};
    if (rows_ * columns_ > kMaxCells) return {{head, rows_, head, columns_}};
    fill(head);
    return walk(head);
  }

 private:
  static constexpr size_t kMaxCells = size_t{1} << 22;

  uint32_t& cell(size_t i, size_t j) { return lengths_[i * (columns_ + 1) + j]; }

  void fill(size_t head) {
    lengths_.assign((rows_ + 1) * (columns_ + 1), 0);
    for (size_t i = rows_; i-- > 0;) {
      for (size_t j = columns_; j-- > 0;) {
        cell(i, j) = a_[head + i] == b_[head + j] ? cell(i + 1, j + 1) + 1
                                                  : std::max(cell(i + 1, j), cell(i, j + 1));
      }
    }
  }

  std::vector<Hunk> walk(size_t head) {
    std::vector<Hunk> found;
    Hunk open;
    const auto close = [&] {
      if (open.removed + open.added > 0) found.push_back(open);
    };
    size_t i = 0, j = 0;
    open = {head, 0, head, 0};
    while (i < rows_ || j < columns_) {
      if (i < rows_ && j < columns_ && a_[head + i] == b_[head + j]) {
        close();
        ++i, ++j;
        open = {head + i, 0, head + j, 0};
      } else if (j == columns_ || (i < rows_ && cell(i + 1, j) >= cell(i, j + 1))) {
        ++i, ++open.removed;
      } else {
        ++j, ++open.added;
      }
    }
    close();
    return found;
  }

  std::vector<std::string_view> a_, b_;
  std::vector<uint32_t> lengths_;
  size_t rows_ = 0, columns_ = 0;
};

/// Leaves out what old and new text begin and end with.
/// Of UTF-8: not the first of a character.
bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

TextEdit trimmed(TextEdit edit, std::string_view before) {
  const std::string_view old = before.substr(edit.begin, edit.end - edit.begin);
  const size_t shorter = std::min(old.size(), edit.text.size());
  size_t head = 0, tail = 0;
  while (head < shorter && old[head] == edit.text[head]) ++head;
  const auto inside = [&](std::string_view s) { return head < s.size() && continues(s[head]); };
  while (head > 0 && (inside(old) || inside(edit.text))) --head;
  const auto last = [](std::string_view s, size_t i) { return s[s.size() - 1 - i]; };
  while (tail < shorter - head && last(old, tail) == last(edit.text, tail)) ++tail;
  while (tail > 0 && continues(last(old, tail - 1))) --tail;
  edit.begin += static_cast<uint32_t>(head);
  edit.end -= static_cast<uint32_t>(tail);
  edit.text = edit.text.substr(head, edit.text.size() - head - tail);
  return edit;
}

std::string joined(const std::vector<std::string_view>& lines, size_t first, size_t count) {
  std::string text;
  for (size_t i = first; i < first + count; ++i) text += lines[i];
  return text;
}

void append_lines(std::string& out, char mark, const std::vector<std::string_view>& lines,
                  size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    (out += mark) += lines[i];
    if (!lines[i].ends_with('\n')) out += "\n\\ No newline at end of file\n";
  }
}

}  // namespace

std::string patched(std::string_view text, const std::vector<TextEdit>& edits) {
  std::string out;
  uint32_t at = 0;
  for (const TextEdit& edit : edits) {
    precondition(at <= edit.begin && edit.begin <= edit.end && edit.end <= text.size());
    (out += text.substr(at, edit.begin - at)) += edit.text;
    at = edit.end;
  }
  return out += text.substr(at);
}

std::vector<TextEdit> difference(std::string_view before, std::string_view after, FileId file) {
  LineDiff diff(before, after);
  std::vector<TextEdit> edits;
  for (const Hunk& hunk : diff.hunks()) {
    const std::vector<std::string_view>& lines = diff.before();
    const auto begin = static_cast<uint32_t>(
        hunk.before < lines.size() ? lines[hunk.before].data() - before.data() : before.size());
    const auto removed = joined(lines, hunk.before, hunk.removed);
    edits.push_back(trimmed({file, begin, begin + static_cast<uint32_t>(removed.size()),
                             joined(diff.after(), hunk.after, hunk.added)},
                            before));
  }
  return edits;
}

std::string unified_diff(const std::string& name, std::string_view before, std::string_view after) {
  constexpr size_t kContext = 3;
  LineDiff diff(before, after);
  const std::vector<Hunk> hunks = diff.hunks();
  const std::vector<std::string_view>& lines = diff.before();
  if (hunks.empty()) return "";
  std::string out = fmt::format("--- {}\n+++ {}\n", name, name);
  for (size_t i = 0; i < hunks.size();) {
    size_t j = i + 1;  // hunks that share context are shown together
    const auto end = [&](size_t k) { return hunks[k].before + hunks[k].removed; };
    while (j < hunks.size() && hunks[j].before <= end(j - 1) + 2 * kContext) ++j;
    const size_t first = hunks[i].before - std::min(hunks[i].before, kContext);
    const size_t last = std::min(end(j - 1) + kContext, lines.size());
    const size_t first_after = hunks[i].after - (hunks[i].before - first);
    const size_t last_after = hunks[j - 1].after + hunks[j - 1].added + (last - end(j - 1));
    out += fmt::format("@@ -{},{} +{},{} @@\n", first + 1, last - first, first_after + 1,
                       last_after - first_after);
    size_t at = first;
    for (; i < j; ++i) {
      append_lines(out, ' ', lines, at, hunks[i].before - at);
      append_lines(out, '-', lines, hunks[i].before, hunks[i].removed);
      append_lines(out, '+', diff.after(), hunks[i].after, hunks[i].added);
      at = end(i);
    }
    append_lines(out, ' ', lines, at, last - at);
  }
  return out;
}

}  // namespace mscclc::fix
