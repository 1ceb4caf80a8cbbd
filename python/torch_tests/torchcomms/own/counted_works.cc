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
    const auto work = c10::make_intrusive<CommsWork>(nullptr, kDevice, std::chrono::minutes(1),
                                                     failures, [] { return false; });
    work->wait();
    work->waitBlocking();
  }
  return CountedEvents::counts();
}

/// A work whose call has ended on the stream since ranks have failed: what a wait says, and then
/// whether it is an error to the thread that watches, too.
std::string failed_work() {
  const auto failures = std::make_shared<Failures>("failed", std::make_shared<AbortHooks>());
  const auto failed = [&] {
    return c10::make_intrusive<CommsWork>(nullptr, kDevice, std::chrono::minutes(1), failures,
                                          [] { return true; });
  };
  std::string said;
  try {
    failed()->waitBlocking();
  } catch (const c10::DistBackendError& error) {
    said = error.what_without_backtrace();
  }
  const auto watched = failed();
  const bool ended = watched->has_ended();
  return said + (ended && watched->status() == torch::comms::TorchWork::WorkStatus::ERROR
                     ? "; the watch sees it"
                     : "");
}

TORCH_LIBRARY(mscclc_own_tests, library) {
  library.def("events_of_works", events_of_works);
  library.def("failed_work", failed_work);
}

}  // namespace
