// Detects two threads at a time where one is allowed, and the child of a fork.
#pragma once

#include <pthread.h>

#include <atomic>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/process/forks.h"

namespace mscclc {

/// Something that one thread at a time may be in, of the process that made it. From any thread.
class OneThread {
 public:
  /// A thread is in while this lives, unless another was. It may enter again from inside.
  class Visit {
   public:
    /// Errors (two-threads, after-fork).
    Visit(OneThread& place, Diagnostics& diagnostics) : place_(place) {
      if (place.forks_ != forks_so_far()) {
        report_fork(diagnostics);
        return;
      }
      allowed_ = place.inside_.load(std::memory_order_relaxed) == self();  // it enters again
      if (allowed_) return;
      const char* none = nullptr;
      allowed_ = entered_ = place.inside_.compare_exchange_strong(
          none, self(), std::memory_order_acquire, std::memory_order_relaxed);
      if (!allowed_) report(diagnostics);
    }
    ~Visit() {
      if (entered_) place_.inside_.store(nullptr, std::memory_order_release);
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    explicit operator bool() const { return allowed_; }

   private:
    /// Not the address of a thread-local variable: every shared library would export it.
    static const char* self() { return reinterpret_cast<const char*>(::pthread_self()); }
    static void report(Diagnostics& diagnostics) {
      diagnostics.error("two-threads", {}, "another thread is inside this communicator")
          .notes.push_back({"a communicator, and everything made from it, is for one thread at a "
                            "time; only abort() may come from any"});
    }
    static void report_fork(Diagnostics& diagnostics) {
      diagnostics.error("after-fork", {},
                        "the communicator was made before this process was forked: only the "
                        "process that made it may use it");
    }

    OneThread& place_;
    bool entered_ = false, allowed_ = false;
  };

 private:
  std::atomic<const char*> inside_{nullptr};
  const uint32_t forks_ = forks();
};

}  // namespace mscclc
