// Text in SVG and HTML, where a command draws.
#pragma once

#include <string>
#include <string_view>

namespace mscclc {

/// Text for XML: '<', '>', '&' and quotes escaped, controls written out.
std::string xml_escaped(std::string_view text);

}  // namespace mscclc
