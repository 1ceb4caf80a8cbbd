// The host device of a rank on which nothing that is launched runs: an error says so when it is
// waited for.
#pragma once

#include <memory>
#include <utility>

#include "tests/helpers/runtime/forwarding_device.h"

namespace mscclc::testing {

class Unlaunched final : public ForwardingDevice {
 public:
  /// `at_once`: launch() fails already.
  Unlaunched(std::unique_ptr<Device> host, bool at_once)
      : ForwardingDevice(std::move(host)), at_once_(at_once) {}
  bool launch(const device::LaunchPlan&, StreamHandle, Diagnostics& diagnostics) override {
    return !at_once_ || refuse(diagnostics);
  }
  bool synchronize(StreamHandle, Diagnostics& diagnostics) override { return refuse(diagnostics); }

 private:
  static bool refuse(Diagnostics& diagnostics) {
    diagnostics.error("out-of-memory", {}, "a launch has not run");
    return false;
  }

  const bool at_once_;
};

}  // namespace mscclc::testing
