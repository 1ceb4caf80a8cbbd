// Text as JSON, where a command prints an object of its own.
#pragma once

#include <string>

namespace mscclc {

/// The text as a string of JSON, quotes included. All of it is printable ASCII, as put() changes
/// what commands a terminal.
std::string json_quoted(const std::string& text);

}  // namespace mscclc
