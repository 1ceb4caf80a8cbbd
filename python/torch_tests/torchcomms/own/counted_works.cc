// Works of TorchComms on a device that counts its events. For OwnEventsTest.py.
#include <torch/library.h>

#include "python/mscclc/torch/comms/work.h"
#include "python/torch_tests/counted_device.h"

namespace {

using namespace mscclc::torch_comms;

C10_REGISTER_GUARD_IMPL(PrivateUse1, CountedEvents)

/// Works of calls that are on the current stream, which are waited for.
std::vector<int64_t> events_of_works(int64_t count) {
  const auto failures = std::make_shared<Failures>("events", std::make_shared<AbortHooks>());
  for (int64_t i = 0; i < count; ++i) {
    const auto work =
        c10::make_intrusive<CommsWork>(nullptr, kDevice, std::chrono::minutes(1), failures);
    work->wait();
    work->waitBlocking();
  }
  return CountedEvents::counts();
}

TORCH_LIBRARY(mscclc_own_tests, library) { library.def("events_of_works", events_of_works); }

}  // namespace
