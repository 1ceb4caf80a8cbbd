// Colours of diagnostics on a terminal: what is wrong in red, warnings in magenta, notes in cyan,
// the marks below the text in green. Elsewhere, and with NO_COLOR set, the text stays as it is.
#pragma once

#include <string>
#include <string_view>

namespace mscclc {

/// True if standard error is a terminal that shows colours and is asked for none other.
bool terminal_has_colours();
/// A text of render_text(), line by line.
std::string with_colours(std::string_view text);

}  // namespace mscclc
