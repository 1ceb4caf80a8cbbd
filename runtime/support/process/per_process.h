// What a process has one of: a table, or the mutex of one. It is made when it is first asked for,
// and never destroyed: threads may use it while the process ends.
//
// A child of fork() begins with one of its own. It has none of its parent's threads, one of which
// may have held the mutex: what that guards would be out of reach forever.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/support/process/forks.h"

namespace mscclc {

/// What a child of fork() does with the T that it inherits.
enum class AfterFork : uint8_t { makes_its_own, goes_on };

/// A part of something that is kept over forks; else see process_wide(). Two threads may each make
/// a T at first, one of which goes at once. Thread safety: from any thread.
template <class T, AfterFork kChild = AfterFork::makes_its_own>
class PerProcess {
 public:
  constexpr PerProcess() = default;
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  T& get() {
    Made* found = made_.load(std::memory_order_acquire);
    while (found == nullptr || !is_of_here(*found)) {
      auto fresh = std::make_unique<Made>(found);
      if (made_.compare_exchange_strong(found, fresh.get())) return fresh.release()->value;
    }
    return found->value;
  }

 private:
  struct Made {
    explicit Made(const Made* of_parent) : inherited(of_parent) {}
    const Made* const inherited;  ///< still referred to, so no leak
    const uint32_t process = forks();
    T value;
  };
  static bool is_of_here(const Made& made) {
    return kChild == AfterFork::goes_on || made.process == forks();
  }
  std::atomic<Made*> made_{nullptr};
};

/// The one T of the process. No guard is held while it is made: a child that is forked meanwhile
/// would wait for it forever.
template <class T, AfterFork kChild>
T& one_of_process() {
  static constinit PerProcess<T, kChild> made;
  return made.get();
}

/// The one T of the process; a child of fork() begins with one of its own. REQUIRES: T is used for
/// one thing, so it says which.
template <class T>
T& process_wide() {
  return one_of_process<T, AfterFork::makes_its_own>();
}

/// The same, and a child of fork() goes on with what it inherits: T looks after its mutex.
template <class T>
T& kept_over_forks() {
  return one_of_process<T, AfterFork::goes_on>();
}

/// From now on a fork waits for the mutex of that T: a child does not find it held by a thread that
/// it has not. Once for a T. The error of pthread_atfork(3), or 0.
template <class T, std::mutex T::*kMutex>
int hold_over_forks() {
  static constexpr auto unlock = [] { (kept_over_forks<T>().*kMutex).unlock(); };
  return ::pthread_atfork([] { (kept_over_forks<T>().*kMutex).lock(); }, unlock, unlock);
}

}  // namespace mscclc
