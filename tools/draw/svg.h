// A picture as SVG, alone or for a page.
#pragma once

#include <string>
#include <string_view>

#include "tools/draw/picture.h"

namespace mscclc::draw {

/// What an SVG has besides what is seen.
enum class Detail : uint8_t {
  plain,  ///< nothing
  page    ///< each part's rank, block, chunks and ops, for the script of a page
};

/// The whole SVG; names in it are escaped.
std::string svg_of(const Picture& picture, Detail detail = Detail::plain);

/// The fill of a chunk's colour, and its line.
std::string_view fill_of(uint32_t colour);
std::string_view line_of(uint32_t colour);

}  // namespace mscclc::draw
