#include "runtime/devices/cuda/driver/driver.h"

#include <catch2/catch.hpp>

#include "tests/helpers/runtime/processes.h"

namespace mscclc::cuda {
namespace {

constexpr std::chrono::minutes kPatience{5};

/// As an exit code.
int loads() {
  Diagnostics diagnostics;
  return load_driver(diagnostics) != nullptr && diagnostics.all().empty() ? 0 : 1;
}

int is_refused() {
  Diagnostics diagnostics;
  if (load_driver(diagnostics) != nullptr || diagnostics.all().size() != 1) return 1;
  const Diagnostic& why = diagnostics.all()[0];
  return why.code == "after-fork" && why.message.find("forked") != std::string::npos ? 0 : 2;
}

// The driver is the one of fake/.
TEST_CASE("a child of fork() has a driver where its parent has used none") {
  testing::Processes processes;
  processes.start(loads);
  CHECK(processes.wait(0, kPatience) == 0);
  REQUIRE(loads() == 0);
  CHECK(loads() == 0);
  processes.start([] { return is_refused() + 4 * is_refused(); });
  CHECK(processes.wait(1, kPatience) == 0);
  CHECK(loads() == 0);
}

}  // namespace
}  // namespace mscclc::cuda
