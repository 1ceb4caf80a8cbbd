// Programs of two ranks with ops whose operands coincide, and with neighbours that an engine makes
// one step of: what the order of an op's parts (ir/ops/parts.h) leaves open must not show.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mscclc {

struct CoincidingProgram {
  std::string name;
  std::string text;
  bool in_place;  ///< how it is called
};

/// All of them, in all packet formats that matter.
const std::vector<CoincidingProgram>& coinciding_programs();

}  // namespace mscclc
