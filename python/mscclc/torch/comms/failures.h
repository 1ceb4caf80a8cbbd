// What happens when the ranks of a communicator have failed, or are to give up.
#pragma once

#include <atomic>
#include <comms/torchcomms/TorchCommHooks.hpp>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace mscclc::torch_comms {

/// What users want to be called before a communicator is aborted, in the order in which they asked.
/// From any thread. Hooks may be functions of Python.
class AbortHooks {
 public:
  void add(int64_t id, torch::comms::AbortHook hook);
  void remove(int64_t id);
  /// None is called any more once this returns.
  void remove_all();
  /// Calls them all; what one throws is logged.
  void run();

 private:
  std::mutex mutex_;  ///< also held while they run
  std::map<int64_t, torch::comms::AbortHook> hooks_;
};

/// Failures of ranks that have met. From any thread.
class Failures {
 public:
  Failures(std::string name, std::shared_ptr<AbortHooks> hooks)
      : name_(std::move(name)), hooks_(std::move(hooks)) {}

  /// From now on a failure ends the process.
  void end_the_process() { ends_ = true; }
  /// What fails from now on was meant to; calls the hooks. The second time nothing.
  void expect();
  /// What has just been caught: throws it again, or ends the process.
  [[noreturn]] void report(const std::exception& error);
  /// The same of a DistBackendError that says this.
  [[noreturn]] void report(const std::string& text);

 private:
  void run_hooks();

  const std::string name_;
  const std::shared_ptr<AbortHooks> hooks_;
  std::atomic<bool> ends_{false};
  std::atomic<bool> have_run_{false};  ///< the hooks
};

}  // namespace mscclc::torch_comms
