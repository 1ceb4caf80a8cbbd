// A picture in Graphviz's language, for tools: every node has its place.
#pragma once

#include <string>

#include "tools/draw/picture.h"

namespace mscclc::draw {

/// The graph. `layout=nop` in it makes Graphviz keep the places, so that ranks stand in order and
/// drawing takes no time.
std::string dot_of(const Picture& picture);

}  // namespace mscclc::draw
