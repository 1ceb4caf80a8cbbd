// A CUDA driver for tests: a model of GPUs, of the processes that use them, and of all that they
// hold there. It does what the driver's documentation says, keeps a list of what the documentation
// forbids (misuses) and of what has not been given back (leaks), and can let any call fail.
//
//   FakeDriver fake({.devices = 2});
//   auto device = CudaDevice::open(fake.driver(), {.ordinal = 0}, ...);
//   fake.enter(1);                        // from here on this thread belongs to process 1
//   fake.fail_call(3);                    // the third call from now on fails
//   CHECK(fake.misuses().empty());        // and once all is destroyed:
//   CHECK(fake.leaks().empty());
//
// Each of its base classes is a part of it: what it does, and what tests ask it to do.
//
// Device addresses are numbers that nothing can read; host memory is real. There is one at a time.
#pragma once

#include <string>
#include <vector>

#include "runtime/devices/cuda/driver/driver.h"
#include "tests/fakes/cuda/fake_calls.h"
#include "tests/fakes/cuda/fake_mappings.h"
#include "tests/fakes/cuda/fake_modules.h"
#include "tests/fakes/cuda/fake_multicast.h"
#include "tests/fakes/cuda/fake_plain.h"

namespace mscclc::cuda {

class FakeDriver : public FakeCalls,
                   public FakeMappings,
                   public FakePlain,
                   public FakeMulticast,
                   public FakeModules {
 public:
  explicit FakeDriver(const FakeOptions& options = {});
  ~FakeDriver();

  const Driver& driver() const { return driver_; }
  /// What exists, of all processes: one line each.
  std::vector<std::string> leaks();

 private:
  static FakeDriver& active();

  Driver driver_;
};

}  // namespace mscclc::cuda
