#include "plans/format/json/json_out.h"

#include <algorithm>
#include <utility>

#include "ir/support/utf8.h"

namespace mscclc {
namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

JsonOut::JsonOut(TextSink sink)
    : sink_(std::move(sink)),
      block_(new char[kBlock]),
      cursor_(block_.get()),
      end_(block_.get() + kBlock) {}

void JsonOut::integer(int64_t value) {
  if (value >= 0) return number64(static_cast<uint64_t>(value));
  character('-');
  number64(0 - static_cast<uint64_t>(value));
}

void JsonOut::long_text(std::string_view text) {
  while (!text.empty()) {
    if (cursor_ == end_) flush();
    const size_t n = std::min(text.size(), static_cast<size_t>(end_ - cursor_));
    word(text.substr(0, n));
    text.remove_prefix(n);
  }
}

void JsonOut::string(std::string_view text) {
  need(1);
  character('"');
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    this->text(text);
  } else {
    escaped(text);
  }
  need(1);
  character('"');
}

void JsonOut::escaped(std::string_view text) {
  bad_text_ |= !is_utf8(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    need(6);
    if (c == '"' || c == '\\') {
      character('\\');
      character(c);
    } else if (is_plain(c) || static_cast<unsigned char>(c) >= 0x7f) {
      character(c);
    } else {
      constexpr char kHex[] = "0123456789abcdef";
      literal("\\u00");
      character(kHex[(c >> 4) & 15]);
      character(kHex[c & 15]);
    }
  }
}

void JsonOut::flush() {
  const std::string_view done(block_.get(), static_cast<size_t>(cursor_ - block_.get()));
  if (!stopped_ && !done.empty()) stopped_ = !sink_(done);
  flushed_ += done.size();
  cursor_ = block_.get();
}

}  // namespace mscclc
