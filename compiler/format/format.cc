// Lays out the tokens of a text again: first into lines, then the comments that follow them are
// aligned. The result depends on the tokens, on blank lines, and on which blocks were written on
// one line; on no other white space of the text.
#include "compiler/format/format.h"

#include <algorithm>

#include "compiler/format/format_tokens.h"
#include "compiler/parser/parser.h"

namespace mscclc {
namespace {

constexpr size_t kWidth = 100;       // columns
constexpr size_t kValueColumn = 11;  // where the values of header items begin, from 0
constexpr size_t kIndent = 2, kContinuation = 4;

/// Columns of a text: characters, not bytes.
size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

bool is_header(ast::Symbol word) {
  switch (word) {
    case ast::w_program:
    case ast::w_import:
    case ast::w_require:
    case ast::w_let:
    case ast::w_param:
    case ast::w_external:
    case ast::w_collective:
    case ast::w_ensure:
    case ast::w_select:
    case ast::w_launch:
      return true;
    default:
      return false;
  }
}

struct Line {
  std::string code;  ///< with its indentation; of a comment alone nothing but that
  std::string_view comment;
  bool blank_before = false;
  bool has_code() const { return !code.empty() && code.back() != ' '; }
};

class Formatter {
 public:
  Formatter(const FormatTokens& text, bool is_ir)
      : text_(text), t_(text.tokens), width_(is_ir ? SIZE_MAX : kWidth) {}

  std::string run() {
    statements(0, static_cast<uint32_t>(t_.size() - 1), 0);
    return write();
  }

 private:
  /// The statements and comments from token `at` to `end`, all of a block or of the file.
  void statements(uint32_t at, uint32_t end, size_t indent) {
    const size_t first = lines_.size();
    while (at < end) {
      comments(at, indent, first);
      const size_t line = lines_.size();
      const uint32_t stop = text_.statement_end(at);
      statement(at, stop, indent);
      lines_[line].blank_before = line > first && t_[at].newlines > 1;
      if (t_[at].symbol == ast::w_rank || t_[at].symbol == ast::w_def) detach(line);
      at = stop;
    }
    comments(end, indent, first);
  }

  /// Comments in front of `token`: the first may follow the last line. Lines from `first` on
  /// are of the same block.
  void comments(uint32_t token, size_t indent, size_t first) {
    for (; comments_before(token + 1); ++next_comment_) {
      const Comment& c = text_.comments[next_comment_];
      if (c.newlines == 0 && !lines_.empty() && lines_.back().has_code() &&
          lines_.back().comment.empty()) {
        lines_.back().comment = c.text;
      } else {
        const bool blank = c.newlines > 1 && lines_.size() > first;
        lines_.push_back({std::string(indent, ' '), c.text, blank});
      }
    }
  }

  /// True if comments are left to be written in front of a token before `end`.
  bool comments_before(uint32_t end) const {
    return next_comment_ < text_.comments.size() && text_.comments[next_comment_].before < end;
  }

  /// A blank line before `line` and the comment above it.
  void detach(size_t line) {
    while (line > 0 && !lines_[line - 1].has_code() && !lines_[line].blank_before) --line;
    lines_[line].blank_before = line > 0;
  }

  void statement(uint32_t at, uint32_t end, size_t indent) {
    if (one_line(at, end, indent)) return;
    const bool header = indent == 0 && is_header(t_[at].symbol);
    const size_t next_indent = header ? kValueColumn : indent + kContinuation;
    size_t this_indent = indent;
    uint32_t run = at;
    for (uint32_t i = at; i < end; ++i) {
      if (i > at && comments_before(i + 1)) {
        flow(run, i, this_indent, next_indent);
        this_indent = t_[i].symbol == ast::w_else && t_[i].brackets == 0 ? indent : next_indent;
        comments(i, this_indent, SIZE_MAX);
        run = i;
      }
      const uint32_t close = t_[i].match;
      if (t_[i].kind != Tok::lbrace || (close == i + 1 && !comments_before(close + 1))) continue;
      flow(run, i + 1, this_indent, next_indent);
      statements(i + 1, close, indent + kIndent);
      run = i = close;
      this_indent = indent;
    }
    flow(run, end, this_indent, next_indent);
  }

  /// Writes the statement as one line if that is allowed: it fits, no comment stands inside, and
  /// its blocks were written on one line.
  bool one_line(uint32_t at, uint32_t end, size_t indent) {
    if (comments_before(end)) return false;
    size_t limit = width_;
    std::string code(indent, ' ');
    int blocks = 0;
    for (uint32_t i = at; i < end; ++i) {
      const FormatToken& t = t_[i];
      const Tok before = i > at ? t_[i - 1].kind : Tok::end;
      if (blocks > 0 && before != Tok::lbrace && t.kind != Tok::rbrace &&
          (t.separated || (before == Tok::rbrace && t.symbol != ast::w_else))) {
        code += " ;";
      }
      add(code, i, i == at, indent == 0);
      blocks -= t.kind == Tok::rbrace;
      const bool empty = t.kind == Tok::rbrace && before == Tok::lbrace;
      if (blocks + (t.kind == Tok::rbrace) > 0 && t.newlines > 0 && !empty) return false;
      blocks += t.kind == Tok::lbrace;
      if (t.kind == Tok::lbrace && t.match > i + 1) limit = kWidth;
      if (code.size() > limit && columns(code) > limit) return false;
    }
    lines_.push_back({std::move(code), {}, false});
    return true;
  }

  /// Appends a token and the space in front of it.
  void add(std::string& code, uint32_t i, bool first, bool file_level) const {
    if (!first) code.append(t_[i].spaces, ' ');
    code += t_[i].text;
    if (first && file_level && is_header(t_[i].symbol)) {
      code.resize(std::max(code.size(), kValueColumn - 1), ' ');
    }
  }

  /// Writes tokens as lines, as few as the width needs.
  void flow(uint32_t at, uint32_t end, size_t indent, size_t next_indent) {
    while (at < end) {
      std::string code(indent, ' ');
      std::vector<size_t> starts;  // where tokens begin in `code`
      uint32_t stop = at;
      for (; stop < end && !too_wide(code); ++stop) {
        starts.push_back(code.size());
        add(code, stop, stop == at, indent == 0);
      }
      if (too_wide(code)) {
        stop = break_point(at, stop, end, starts);
        code.assign(indent, ' ');
        for (uint32_t i = at; i < stop; ++i) add(code, i, i == at, indent == 0);
      }
      lines_.push_back({std::move(code), {}, false});
      at = stop;
      indent = next_indent;
    }
  }

  bool too_wide(const std::string& code) const {
    return code.size() > width_ && columns(code) > width_;
  }

  /// The token that begins the next line: of those before `stop`, which did not all fit, the last
  /// one at the outermost place that leaves the line half full. One after `stop` if need be.
  uint32_t break_point(uint32_t at, uint32_t stop, uint32_t end,
                       const std::vector<size_t>& starts) const {
    uint32_t best = at;
    for (uint32_t i = stop - 1; i > at; --i) {
      const bool half_full = starts[i - at] > kWidth / 2;
      const bool better = best == at || (half_full && depth(i) < depth(best));
      if (t_[i].breakable && better) best = i;
    }
    for (uint32_t i = stop; best == at; ++i) {
      if (i >= end || t_[i].breakable) best = std::min(i, end);
    }
    return best;
  }

  /// How far inside a break before this token is: after '<-', in no bracket, in one …
  int depth(uint32_t i) const { return t_[i - 1].kind == Tok::arrow ? 0 : 1 + t_[i].brackets; }

  /// The lines as text. Comments at the ends of neighbouring lines stand two columns past the
  /// longest.
  std::string write() const {
    std::string out;
    size_t column = 0, aligned = 0;  // lines before `aligned` have their comments at `column`
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      if (line.blank_before) out += '\n';
      out += line.code;
      if (line.has_code() && !line.comment.empty()) {
        if (i >= aligned) {
          column = 0;
          for (aligned = i; aligned < lines_.size() && in_run(i, aligned); ++aligned) {
            column = std::max(column, columns(lines_[aligned].code) + 2);
          }
        }
        out.append(column - columns(line.code), ' ');
      }
      out += line.comment;
      out += '\n';
    }
    return out;
  }

  /// True if the comment at the end of line `i` stands below those from line `first` on.
  bool in_run(size_t first, size_t i) const {
    return lines_[i].has_code() && !lines_[i].comment.empty() &&
           (i == first || !lines_[i].blank_before);
  }

  const FormatTokens& text_;
  const std::vector<FormatToken>& t_;
  size_t width_;
  std::vector<Line> lines_;
  size_t next_comment_ = 0;
};

}  // namespace

std::optional<std::string> format_program(Sources& sources, FileId id, Diagnostics& diagnostics) {
  ast::Ast ast(sources);
  const ast::File* file = parse_file(sources, id, ast, diagnostics);
  if (file == nullptr) return std::nullopt;
  return Formatter(format_tokens(*file, ast), file->is_ir).run();
}

}  // namespace mscclc
