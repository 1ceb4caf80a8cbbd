// Threads of the runtime: they take none of the process's signals, whose handlers belong to the
// application.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace mscclc {

/// Starts `fn` on a thread with all signals blocked. `name`: at most 15 characters, for debuggers.
template <class Fn>
std::thread quiet_thread(const char* name, Fn fn) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // threads inherit the mask
  std::thread thread(std::move(fn));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace mscclc
