#include "tests/random_programs/families/soup/shape.h"

#include <fmt/format.h>

namespace mscclc::random_programs::soup {

RankChunk Shape::origin(const RankChunk& place) const {
  if (!either || !place.name.starts_with("input")) return place;
  const auto number =
      static_cast<uint32_t>(std::stoul(place.name.substr(place.name.find('[') + 1)));
  const uint32_t first = gathers ? place.rank * positions : 0;
  return {place.rank, fmt::format("output[{}]", first + number)};
}

}  // namespace mscclc::random_programs::soup
