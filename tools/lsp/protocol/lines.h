// Places in a text as the protocol has them: lines and UTF-16 code units, both from 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/lsp/protocol/json.h"

namespace mscclc::lsp {

struct Position {
  uint32_t line = 0, character = 0;
  bool operator==(const Position&) const = default;
};

struct Range {
  Position start, end;
  bool operator==(const Range&) const = default;
};

/// Where the lines of a text begin. Lines end with "\n", "\r\n" or "\r". The text must outlive it.
class Lines {
 public:
  explicit Lines(std::string_view text);
  /// Of a byte; beyond the end it is the end.
  Position position(size_t byte) const;
  Range range(size_t begin, size_t end) const { return {position(begin), position(end)}; }
  /// The byte at a position. Beyond the end of a line it is the line's end, beyond the last line
  /// the end of the text; within a character it is where that begins.
  size_t byte(const Position& position) const;
  /// The byte at a line and column (in bytes) of the compiler, both from 1, whose lines end with
  /// "\n". What there is not becomes what comes nearest.
  size_t byte_of(uint32_t line, uint32_t column) const;

 private:
  size_t line_end(size_t line) const;
  std::string_view text_;
  std::vector<size_t> begins_;
};

Json to_json(const Position& position);
Json to_json(const Range& range);
/// Nothing if it is none.
std::optional<Position> position_of(const Json& json);
std::optional<Range> range_of(const Json& json);

}  // namespace mscclc::lsp
