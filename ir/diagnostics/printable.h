// Text from outside as text for people: a terminal never gets a byte that could command it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mscclc {

/// A character of UTF-8: how many bytes it takes and which it is; size 1 and code 0 if the bytes
/// are not UTF-8.
struct Character {
  size_t bytes = 1;
  uint32_t code = 0;
};
/// The first one. REQUIRES: not empty.
Character first_character(std::string_view text);
/// A byte of a character of UTF-8 that is not its first.
bool is_continuation(char c);
/// Controls (including those above ASCII), what is not UTF-8, and what makes a terminal write from
/// right to left or begin a line.
bool is_control(const Character& c);

/// The text with "\x1b" for bytes that are not UTF-8 or are controls, except line ends and tabs.
std::string printable(std::string_view text);
/// The same for line ends and tabs too: one line stays one line.
std::string printable_line(std::string_view text);
/// The text if it has at most `most` bytes; of a longer one as many characters, and "…".
std::string beginning(std::string_view text, size_t most);
/// A printable line in quotes, truncated after `most` bytes: 'SSH-2.0…'.
std::string quoted(std::string_view text, size_t most = 80);

}  // namespace mscclc
