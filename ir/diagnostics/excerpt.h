// The place of a diagnostic, looked up in the sources, and the line of text around it made fit for
// a terminal: tabs, characters of several bytes, control characters and very long lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/support/source.h"

namespace mscclc {

/// A place with everything that is printed of it.
struct ResolvedPlace {
  std::string_view file;
  uint32_t line = 0, column = 0, end_column = 0;  ///< end: one past the last byte on the line
  uint32_t last_line = 0, last_column = 0;        ///< where all of it ends
  std::string_view text;                          ///< the whole line, "" if it is not known
};

/// Looks a span up. A span of which only line and column are known (begin and end 0) covers the
/// word there. `file`, if not empty, names the file instead of span.file. Nothing if the span is
/// invalid.
std::optional<ResolvedPlace> resolve(const Span& span, std::string_view file,
                                     const Sources& sources);

/// The line and the line of `^~~~` under it, both with their newline; "" if the text is unknown.
std::string excerpt(const ResolvedPlace& place);

}  // namespace mscclc
