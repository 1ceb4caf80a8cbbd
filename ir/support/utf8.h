// Where characters of UTF-8 end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/support/precondition.h"

namespace mscclc {

/// Bytes of the UTF-8 character that begins `text`; 0 if it is none: overlong, a surrogate, beyond
/// U+10FFFF, or cut off. REQUIRES: !text.empty().
inline size_t utf8_length(std::string_view text) {
  precondition(!text.empty());
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length == 0 || lead > 0xf4 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return length == 1 || (byte(1) >= least && byte(1) <= most) ? length : 0;
}

}  // namespace mscclc
