// How threads of lanes start: each first does what its device asks of it.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc::net {

/// Called first in the thread. False: reported.
using BeginThread = std::function<bool(Diagnostics& diagnostics)>;

/// A thread that runs `run` if `begin` (empty: nothing) succeeds; returns when `begin` has. Not
/// joinable: reported (no-thread, or what `begin` reports).
template <class Run>
[[nodiscard]] std::thread begin_lane_thread(const char* name, const BeginThread& begin, Run run,
                                            Diagnostics& diagnostics) {
  Diagnostics problems;
  const auto begun = std::make_shared<std::promise<bool>>();  // its thread may outlast this call
  std::thread thread = quiet_thread(name, [&problems, begin, begun, run] {
    bool good = false;
    try {
      good = !begin || begin(problems);
    } catch (const std::bad_alloc&) {
    }
    begun->set_value(good);
    if (good) run();
  });
  if (!has_started(thread, "lanes over sockets", diagnostics)) return thread;
  if (begun->get_future().get()) return thread;
  thread.join();
  if (!problems.has_errors()) {
    problems.error("no-thread", {}, "there is not enough memory for a thread of lanes");
  }
  for (const Diagnostic& d : problems.all()) diagnostics.add(d);
  return {};
}

}  // namespace mscclc::net
