// For tests: what launchers set, and how it is read.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "runtime/bootstrap/job/launcher.h"
#include "runtime/support/environment/environment.h"

namespace mscclc::testing {

using Values = Environment::Values;

inline Values with(Values values, const Values& others) {
  for (const auto& [name, value] : others) values[name] = value;
  return values;
}

inline LaunchedRank read(const Values& values, const std::string& group = "") {
  Diagnostics diagnostics;
  const auto launch = read_launch(Environment(values), group, diagnostics);
  INFO((diagnostics.all().empty() ? "" : diagnostics.all().front().message));
  REQUIRE(launch);
  CHECK(diagnostics.all().empty());
  return *launch;
}

}  // namespace mscclc::testing
