// Writes JSON text fast: into a block of memory with unchecked stores, which is handed on when it
// is full. Every composite writer first asks for the most bytes it may need:
//
//   out.need(64);
//   out.literal("{\"type\":\"i\",\"index\":");
//   out.number(first);
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ir/support/precondition.h"
#include "plans/format/json/digits.h"

namespace mscclc {

/// Where the text goes, block by block; false stops the writing.
using TextSink = std::function<bool(std::string_view)>;

class JsonOut {
 public:
  static constexpr size_t kBlock = size_t{32} << 10;

  explicit JsonOut(TextSink sink);
  JsonOut(const JsonOut&) = delete;
  JsonOut& operator=(const JsonOut&) = delete;

  /// Makes room for `bytes` more. REQUIRES: bytes <= kBlock.
  void need(size_t bytes) {
    if (static_cast<size_t>(end_ - cursor_) < bytes) flush();
  }
  /// The unchecked stores. REQUIRES: need() was asked for them.
  template <size_t N>
  void literal(const char (&text)[N]) {
    precondition(static_cast<size_t>(end_ - cursor_) >= N - 1);
    std::memcpy(cursor_, text, N - 1);
    cursor_ += N - 1;
  }
  void character(char c) {
    precondition(cursor_ < end_);
    *cursor_++ = c;
  }
  void number(uint32_t value) { cursor_ = write_digits(cursor_, value); }
  void number64(uint64_t value) { cursor_ = write_digits64(cursor_, value); }
  void integer(int64_t value);
  /// Short text as it is. REQUIRES: need(text.size()).
  void word(std::string_view text) {
    precondition(static_cast<size_t>(end_ - cursor_) >= text.size());
    std::memcpy(cursor_, text.data(), text.size());
    cursor_ += text.size();
  }
  /// Takes back the last character, a comma say. REQUIRES: it was written since need().
  void take_back() {
    precondition(cursor_ > block_.get());
    --cursor_;
  }
  char last() const { return cursor_[-1]; }

  /// Text of any length, as it is.
  void text(std::string_view text) {
    if (text.size() <= static_cast<size_t>(end_ - cursor_)) return word(text);
    long_text(text);
  }
  /// A JSON string with its quotes and escapes. Text that is not UTF-8 makes bad_text() true.
  void string(std::string_view text);

  void flush();
  uint64_t written() const { return flushed_ + static_cast<uint64_t>(cursor_ - block_.get()); }
  bool bad_text() const { return bad_text_; }
  /// True once the sink has refused a block.
  bool stopped() const { return stopped_; }

 private:
  void long_text(std::string_view text);
  void escaped(std::string_view text);

  TextSink sink_;
  std::unique_ptr<char[]> block_;
  char* cursor_;
  char* end_;
  uint64_t flushed_ = 0;
  bool bad_text_ = false, stopped_ = false;
};

/// True if `text` is UTF-8 as JSON demands it: no overlong forms, no surrogates.
bool is_utf8(std::string_view text);

}  // namespace mscclc
