// Appends text fast: small pieces go to a buffer, the buffer to a string. A plan may be printed to
// hundreds of megabytes, a few bytes at a time.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace mscclc {

class TextWriter {
 public:
  /// `buffer`: bytes collected before they go to the string; at least 64.
  explicit TextWriter(size_t buffer = 1 << 16)
      : buffer_(std::make_unique_for_overwrite<char[]>(buffer)), size_(buffer) {}

  TextWriter& operator<<(char c) {
    if (used_ == size_) flush();
    buffer_[used_++] = c;
    return *this;
  }

  TextWriter& operator<<(std::string_view text) {
    if (text.size() > size_ - used_) {
      flush();
      if (text.size() > size_) {
        out_ += text;
        return *this;
      }
    }
    copy(buffer_.get() + used_, text.data(), text.size());
    used_ += text.size();
    return *this;
  }

  TextWriter& number(int64_t n) { return digits(n); }
  TextWriter& number(uint64_t n) { return digits(n); }
  TextWriter& number(uint32_t n) { return digits(n); }

  void spaces(size_t n) {
    for (; n > 0; --n) *this << ' ';
  }

  /// Reserves room for a text of about so many bytes.
  void reserve(size_t bytes) { out_.reserve(bytes); }
  size_t size() const { return out_.size() + used_; }

  /// The text; the writer is empty afterwards.
  std::string take() {
    flush();
    return std::move(out_);
  }

 private:
  static constexpr size_t kMaxDigits = 20;

  /// Most pieces are a few bytes: two loads that overlap are faster than a call.
  static void copy(char* to, const char* from, size_t n) {
    if (n >= 4 && n <= 16) {
      if (n >= 8) {
        uint64_t a, b;
        std::memcpy(&a, from, 8);
        std::memcpy(&b, from + n - 8, 8);
        std::memcpy(to, &a, 8);
        std::memcpy(to + n - 8, &b, 8);
      } else {
        uint32_t a, b;
        std::memcpy(&a, from, 4);
        std::memcpy(&b, from + n - 4, 4);
        std::memcpy(to, &a, 4);
        std::memcpy(to + n - 4, &b, 4);
      }
    } else if (n < 4) {
      for (size_t i = 0; i < n; ++i) to[i] = from[i];
    } else {
      std::memcpy(to, from, n);
    }
  }

  template <class T>
  TextWriter& digits(T n) {
    if (size_ - used_ < kMaxDigits) flush();
    char* const begin = buffer_.get() + used_;
    used_ += static_cast<size_t>(std::to_chars(begin, begin + kMaxDigits, n).ptr - begin);
    return *this;
  }

  void flush() {
    out_.append(buffer_.get(), used_);
    used_ = 0;
  }

  std::string out_;
  std::unique_ptr<char[]> buffer_;
  size_t size_, used_ = 0;
};

}  // namespace mscclc
