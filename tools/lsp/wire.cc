#include "tools/lsp/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "ir/diagnostics/printable.h"

namespace mscclc::lsp {
namespace {

constexpr std::string_view kEnd = "\r\n\r\n", kLineEnd = "\r\n";

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return lower(x) == lower(y);
  });
}

std::string_view without_blanks(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

}  // namespace

Wire::Got Wire::broken(std::string why) {
  error_ = std::move(why);
  return Got::broken;
}

bool Wire::read_header(std::string_view header) {
  bool found = false;
  while (!header.empty()) {
    const std::string_view line = header.substr(0, header.find(kLineEnd));
    header.remove_prefix(std::min(line.size() + kLineEnd.size(), header.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      error_ = fmt::format("a header line without ':': {}", quoted(line));
      return false;
    }
    if (!same_word(line.substr(0, colon), "Content-Length")) continue;
    const std::string_view value = without_blanks(line.substr(colon + 1));
    const char* end = value.data() + value.size();
    const auto [after, error] = std::from_chars(value.data(), end, length_);
    if (error != std::errc() || after != end || length_ > kMaxMessage || found) {
      error_ = fmt::format("Content-Length is {}; it must be a number up to {}", quoted(value),
                           kMaxMessage);
      return false;
    }
    found = true;
  }
  if (!found) error_ = "a header without Content-Length";
  return found;
}

Wire::Got Wire::next(std::string& body) {
  if (!error_.empty()) return Got::broken;
  if (!in_body_) {
    const std::string_view rest = std::string_view(bytes_).substr(begin_);
    const size_t end = rest.substr(0, kMaxHeader).find(kEnd);
    if (end == std::string_view::npos) {
      if (rest.size() < kMaxHeader) return Got::nothing;
      return broken(fmt::format("a header of more than {} bytes", kMaxHeader));
    }
    if (!read_header(rest.substr(0, end))) return Got::broken;
    begin_ += end + kEnd.size();
    in_body_ = true;
  }
  if (bytes_.size() - begin_ < length_) return Got::nothing;
  body = bytes_.substr(begin_, length_);
  begin_ += length_;
  in_body_ = false;
  // What has been handed out is dropped once it is the greater part: each byte is moved once.
  if (begin_ > bytes_.size() / 2) {
    bytes_.erase(0, begin_);
    begin_ = 0;
  }
  return Got::message;
}

std::string framed(const Json& message) {
  const std::string text = to_text(message);
  return fmt::format("Content-Length: {}\r\n\r\n{}", text.size(), text);
}

}  // namespace mscclc::lsp
