// Every op in a tiny program whose contract is what the op does: for tests of all machines.
#pragma once

#include <string>
#include <vector>

#include "tests/helpers/programs/test_programs.h"

namespace mscclc::testing {

struct OpPlan {
  std::string name;
  TestProgram (*build)(PacketFormat);
  bool packets;  ///< build() heeds the format
};

/// Together the plans hold every op of the table.
const std::vector<OpPlan>& op_plans();
/// The formats to build a plan for.
std::vector<PacketFormat> formats_of(const OpPlan& plan);

}  // namespace mscclc::testing
