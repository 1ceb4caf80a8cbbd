// Threads of the runtime: they take none of the process's signals, whose handlers belong to the
// application.
#pragma once

#include <pthread.h>

#include <csignal>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// Starts `fn` on a thread with all signals blocked; the caller's mask stays what it was. `name`:
/// at most 15 characters, for debuggers. Where the system gives no thread (limits on processes or
/// memory) it is not joinable: ask has_started().
template <class Fn>
[[nodiscard]] std::thread quiet_thread(const char* name, Fn fn) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // threads inherit the mask
  std::thread thread;
  try {
    thread = std::thread(std::move(fn));
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (thread.joinable()) pthread_setname_np(thread.native_handle(), name);
  return thread;
}

/// Was there a thread to be had for `what`? Errors (no-thread).
[[nodiscard]] inline bool has_started(const std::thread& thread, const std::string& what,
                                      Diagnostics& diagnostics) {
  if (thread.joinable()) return true;
  diagnostics.error("no-thread", {}, "the system gives no thread for " + what)
      .notes.push_back(
          {"limits are 'ulimit -u' (processes and threads of the user), 'ulimit -v' (memory, which "
           "stacks need) and pids.max of the control group"});
  return false;
}

}  // namespace mscclc
