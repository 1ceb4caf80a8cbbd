// Source text and places in it. A Span is three numbers; names, lines and columns are looked up
// only when something is printed.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace mscclc {

using FileId = uint32_t;

/// Bytes [begin, end) of a source file. Line and column (both from 1, columns count bytes) of
/// `begin` travel with it, so that plans need no source text.
struct Span {
  FileId file = 0;
  uint32_t begin = 0, end = 0;
  uint32_t line = 0, column = 0;  ///< 0: no place (a built program)
  bool valid() const { return line != 0; }
};

/// A source file held in memory.
struct SourceFile {
  std::string name;  ///< as the user wrote it; "-" for standard input
  std::string text;
};

/// Owns the files of one compilation; FileId indexes it.
class Sources {
 public:
  FileId add(std::string name, std::string text);
  const SourceFile& file(FileId id) const { return files_[id]; }
  size_t size() const { return files_.size(); }
  /// The text of the line that holds `span.begin`, without its newline; "" if the text is unknown.
  std::string_view line_of(const Span& span) const;

 private:
  std::deque<SourceFile> files_;
};

}  // namespace mscclc
