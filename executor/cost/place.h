// Where the author wrote an op, without the values of loop variables.
#pragma once

#include <string>

#include "ir/program/program.h"

namespace mscclc::cost {

/// "ring.mscl:27:14", of the op's first location; "" if it has none.
inline std::string place_of(const Program& program, const Op& op) {
  if (op.locations.count == 0) return "";
  const Site& site = program.sites[program.locations.at(op.locations.first)->site];
  return program.files[site.file] + ":" + std::to_string(site.line) + ":" +
         std::to_string(site.column);
}

}  // namespace mscclc::cost
