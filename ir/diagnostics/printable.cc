#include "ir/diagnostics/printable.h"

#include <algorithm>
#include <iterator>

#include "ir/support/precondition.h"

namespace mscclc {
namespace {

/// First and last of the characters that set the direction of what follows, or end a line.
constexpr uint32_t kOfLayout[][2] = {
    {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
constexpr std::string_view kDigits = "0123456789abcdef";

std::string escaped(std::string_view text, bool one_line) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Character c = first_character(text.substr(at));
    const bool blank = c.code == '\n' || c.code == '\t';
    if (is_control(c) && (one_line || !blank)) {
      for (const char byte : text.substr(at, c.bytes)) {
        const auto value = static_cast<unsigned char>(byte);
        out += "\\x";
        out += kDigits[value >> 4];
        out += kDigits[value & 15];
      }
    } else {
      out += text.substr(at, c.bytes);
    }
    at += c.bytes;
  }
  return out;
}

}  // namespace

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

Character first_character(std::string_view text) {
  precondition(!text.empty());
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  const size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < n) return {};
  uint32_t code = first & (0xff >> (n + 1));
  for (size_t i = 1; i < n; ++i) {
    if (!is_continuation(text[i])) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  return {n, code};
}

bool is_control(const Character& c) {
  return c.code < 0x20 || (c.code >= 0x7f && c.code < 0xa0) ||
         std::any_of(std::begin(kOfLayout), std::end(kOfLayout),
                     [&](const auto& range) { return c.code >= range[0] && c.code <= range[1]; });
}

std::string printable(std::string_view text) { return escaped(text, false); }
std::string printable_line(std::string_view text) { return escaped(text, true); }

std::string beginning(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && is_continuation(text[most])) --most;  // whole characters, if they are any
  return std::string(text.substr(0, most)) + "…";
}

std::string quoted(std::string_view text, size_t most) {
  return "'" + escaped(beginning(text, most), true) + "'";
}

}  // namespace mscclc
