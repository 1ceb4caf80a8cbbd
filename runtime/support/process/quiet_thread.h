// Threads of the runtime: they take none of the process's signals, whose handlers belong to the
// application.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// Starts `fn` on a thread with all signals blocked; the caller's mask stays what it was. `name`:
/// at most 15 characters, for debuggers. Where the system gives no thread (limits on processes or
/// memory) it is not joinable: ask has_started().
///
/// Where `fn` finds no memory (std::bad_alloc), the thread does `without_memory` and ends; the
/// process goes on. That must see to it that nothing waits for this thread, and should allocate
/// little: a large piece is what is lacking as a rule. If it throws, too, the thread ends all the
/// same.
template <class Fn, class WithoutMemory>
[[nodiscard]] std::thread quiet_thread(const char* name, Fn fn, WithoutMemory without_memory) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // threads inherit the mask
  std::thread thread;
  try {
    thread =
        std::thread([fn = std::move(fn), without_memory = std::move(without_memory)]() mutable {
          try {
            fn();
            return;
          } catch (const std::bad_alloc&) {
          }
          try {
            without_memory();
          } catch (const std::bad_alloc&) {
          }
        });
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (thread.joinable()) pthread_setname_np(thread.native_handle(), name);
  return thread;
}

/// The same; a lack of memory is said on standard error, and noticed by those that wait for this
/// thread when their time is over.
template <class Fn>
[[nodiscard]] std::thread quiet_thread(const char* name, Fn fn) {
  return quiet_thread(name, std::move(fn), [name] {
    constexpr std::string_view before = "mscclc: there is not enough memory; this thread ends: ";
    const auto say = [](std::string_view text) {
      [[maybe_unused]] const ssize_t said = ::write(STDERR_FILENO, text.data(), text.size());
    };
    say(before), say(name), say("\n");
  });
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
