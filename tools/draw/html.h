// A picture as one page for a browser: the SVG, and a script that shows ops and filters.
#pragma once

#include <string>

#include "tools/draw/picture.h"

namespace mscclc::draw {

/// The page. It needs nothing else: no network, no other files.
std::string html_of(const Picture& picture);

}  // namespace mscclc::draw
