#include "python/mscclc/torch/comms/failures.h"

#include <c10/util/Exception.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "python/mscclc/torch/adapter/interpreter.h"

namespace mscclc::torch_comms {

using torch_adapter::WithoutInterpreter;

// ---- AbortHooks ----
//
// A hook that runs may wait for the interpreter, with the mutex: so a thread that waits for the
// mutex lets go of the interpreter. To free a hook needs that again, without the mutex.

void AbortHooks::add(int64_t id, torch::comms::AbortHook hook) {
  const WithoutInterpreter other_threads;
  const std::lock_guard lock(mutex_);
  hooks_.emplace(id, std::move(hook));
}

void AbortHooks::remove(int64_t id) {
  decltype(hooks_)::node_type gone;
  const WithoutInterpreter other_threads;
  const std::lock_guard lock(mutex_);
  gone = hooks_.extract(id);
}

void AbortHooks::remove_all() {
  decltype(hooks_) gone;
  const WithoutInterpreter other_threads;
  const std::lock_guard lock(mutex_);
  gone.swap(hooks_);
}

void AbortHooks::run() {
  const WithoutInterpreter other_threads;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, hook] : hooks_) {
    try {
      hook();
    } catch (const std::exception& error) {
      TORCH_WARN("mscclc: an abort hook has failed: ", error.what());
    } catch (...) {
      TORCH_WARN("mscclc: an abort hook has failed");
    }
  }
}

// ---- Failures ----

void Failures::run_hooks() {
  if (!have_run_.exchange(true)) hooks_->run();
}

void Failures::expect() {
  ends_ = false;
  run_hooks();
}

void Failures::report(const std::exception& error) {
  if (!ends_) throw;
  run_hooks();
  std::fprintf(stderr,
               "mscclc: communicator '%s' has failed, which ends the process"
               " (abort_process_on_timeout_or_error): %s\n",
               name_.c_str(), error.what());
  std::abort();
}

void Failures::report(const std::string& text) {
  try {
    C10_THROW_ERROR(DistBackendError, text);
  } catch (const c10::DistBackendError& error) {
    report(error);
  }
}

}  // namespace mscclc::torch_comms
