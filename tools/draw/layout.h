// From a program to a picture of it. The layout decides what is drawn and where; writers only
// write.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/result.h"
#include "tools/draw/picture.h"

namespace mscclc::draw {

struct DrawOptions {
  std::vector<uint32_t> ranks;   ///< those that get a band; empty: all, or one of each kind
  std::vector<uint32_t> blocks;  ///< thread blocks; empty: all
  std::string chunk;             ///< only ops that touch it: "inbox[2]", "3" of input and output
  std::string proved;            ///< what is proved of the plan, in words; "" if nothing is known
  std::string between_calls;     ///< what keeps two calls apart, in words; the same
};

/// More boxes are no picture: the options must pick fewer.
inline constexpr size_t kMaxBoxes = 6000;

/// Fails if the options pick nothing, or too much.
Result<Picture> lay_out(const Program& program, const DrawOptions& options);

}  // namespace mscclc::draw
