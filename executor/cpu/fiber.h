// Fibers: functions that can stop in the middle and go on later, all on one thread. Each runs on a
// stack of its own with an unmapped page below it. AddressSanitizer and ThreadSanitizer are
// notified of every switch.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "executor/cpu/context.h"

namespace mscclc {

class Fiber {
 public:
  using Function = void (*)(void* argument);
  static constexpr size_t kStack = size_t{256} << 10;  ///< touched only as far as it is used

  /// `stack`: its lowest address.
  explicit Fiber(void* stack) : stack_(stack) {}
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Prepares to call `function(argument)` at the first resume(). A fiber that was given up before
  /// its end may be started again; its locals are not destroyed.
  void start(Function function, void* argument);
  /// Runs the fiber until it suspends or ends. REQUIRES: started, not ended, called off fibers.
  void resume();
  /// Goes back to where resume() was called. REQUIRES: runs on this fiber.
  void suspend();
  /// The same for the last time, wherever it is: nothing resumes it, and its locals are not
  /// destroyed. It may be started again.
  [[noreturn]] void leave();
  bool ended() const { return ended_; }

 private:
  static void main(void* self);
  void forget_last_run();

  Function function_ = nullptr;
  void* argument_ = nullptr;
  void* const stack_;
  Context own_, resumer_;
  bool ended_ = true, left_ = false;
  // What the sanitizers want back at a switch; unused without them.
  void* own_fake_stack_ = nullptr;
  const void* resumer_stack_ = nullptr;
  size_t resumer_bytes_ = 0;
  [[maybe_unused]] void* tsan_own_ = nullptr;
  [[maybe_unused]] void* tsan_resumer_ = nullptr;
};

/// Fibers with their stacks, kept for reuse; those of a pool that goes, for the thread's next one.
class FiberPool {
 public:
  FiberPool();
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  /// A fiber to be started; nullptr if the system gives no more memory.
  Fiber* take();
  void give(Fiber* fiber) { free_.push_back(fiber); }

 private:
  bool take_block();

  std::shared_ptr<class SpareBlocks> spare_;
  std::vector<void*> blocks_;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> free_;
};

}  // namespace mscclc
