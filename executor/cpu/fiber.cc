#include "executor/cpu/fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <mutex>

#include "ir/support/precondition.h"

// The configurations of the sanitizers define these (.bazelrc).
#if defined(MSCCLC_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(MSCCLC_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(MSCCLC_TSAN)
// Hidden from the sanitizer: a fiber's first and last function never return.
#define MSCCLC_NO_TSAN __attribute__((no_sanitize_thread))
#else
#define MSCCLC_NO_TSAN
#endif

namespace mscclc {
namespace {

constexpr size_t kGuard = 4096;
constexpr size_t kStride = Fiber::kStack + kGuard;
constexpr size_t kPerBlock = 16;  // stacks mapped at once
constexpr size_t kMaxSpare =
    64;  // blocks: of them what was used is resident, mostly a page a stack

}  // namespace

/// Stacks, each with its guard, that no pool of a thread has now. To map, to touch and to unmap
/// them would be half of the time of short runs. Pools may outlive their thread, and go in another
/// one.
class SpareBlocks {
 public:
  static std::shared_ptr<SpareBlocks> of_thread() {
    thread_local const auto spare = std::make_shared<SpareBlocks>();
    return spare;
  }
  SpareBlocks() = default;
  SpareBlocks(const SpareBlocks&) = delete;
  SpareBlocks& operator=(const SpareBlocks&) = delete;
  ~SpareBlocks() {
    for (void* block : blocks_) munmap(block, kStride * kPerBlock);
  }
  /// nullptr: the system gives no more memory.
  void* take() {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return map();
    void* const block = blocks_.back();
    blocks_.pop_back();
    return block;
  }
  void give(void* block) {
#if defined(MSCCLC_ASAN)
    // Fibers that were given up leave red zones, and the addresses may come back as anything.
    __asan_unpoison_memory_region(block, kStride * kPerBlock);
#endif
    const std::lock_guard lock(mutex_);
    if (blocks_.size() < kMaxSpare) {
      blocks_.push_back(block);
    } else {
      munmap(block, kStride * kPerBlock);
    }
  }

 private:
  static void* map() {
    void* const block = mmap(nullptr, kStride * kPerBlock, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (block == MAP_FAILED) return nullptr;
    for (size_t i = 0; i < kPerBlock; ++i) {
      if (mprotect(static_cast<char*>(block) + i * kStride, kGuard, PROT_NONE) == 0) continue;
      munmap(block, kStride * kPerBlock);
      return nullptr;
    }
    return block;
  }

  std::mutex mutex_;
  std::vector<void*> blocks_;
};

FiberPool::FiberPool() = default;

FiberPool::~FiberPool() {
  fibers_.clear();
  for (void* block : blocks_) spare_->give(block);
}

bool FiberPool::take_block() {
  if (spare_ == nullptr) spare_ = SpareBlocks::of_thread();
  void* const block = spare_->take();
  if (block == nullptr) return false;
  blocks_.push_back(block);
  for (size_t i = 0; i < kPerBlock; ++i) {
    free_.push_back(&fibers_.emplace_back(static_cast<char*>(block) + i * kStride + kGuard));
  }
  return true;
}

Fiber* FiberPool::take() {
  if (free_.empty() && !take_block()) return nullptr;
  Fiber* fiber = free_.back();
  free_.pop_back();
  return fiber;
}

Fiber::~Fiber() {
#if defined(MSCCLC_TSAN)
  if (tsan_own_ != nullptr) __tsan_destroy_fiber(tsan_own_);
#endif
}

// A fiber that was given up in the middle leaves red zones and frames behind.
void Fiber::forget_last_run() {
#if defined(MSCCLC_ASAN)
  __asan_unpoison_memory_region(stack_, kStack);
#endif
#if defined(MSCCLC_TSAN)
  if (tsan_own_ != nullptr) __tsan_destroy_fiber(tsan_own_);
  tsan_own_ = nullptr;
#endif
}

void Fiber::start(Function function, void* argument) {
  if (!ended_) forget_last_run();
  function_ = function;
  argument_ = argument;
  ended_ = false;
  left_ = false;
  create_context(own_, stack_, kStack, &Fiber::main, this);
#if defined(MSCCLC_TSAN)
  if (tsan_own_ == nullptr) tsan_own_ = __tsan_create_fiber(0);
#endif
}

void Fiber::resume() {
  precondition(!ended_ && !left_);
#if defined(MSCCLC_ASAN)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, kStack);
#endif
#if defined(MSCCLC_TSAN)
  tsan_resumer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_own_, 0);
#endif
  switch_context(resumer_, own_);
#if defined(MSCCLC_ASAN)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

MSCCLC_NO_TSAN void Fiber::suspend() {
#if defined(MSCCLC_ASAN)
  // An ended fiber's fake stack is freed here.
  __sanitizer_start_switch_fiber(ended_ || left_ ? nullptr : &own_fake_stack_, resumer_stack_,
                                 resumer_bytes_);
#endif
#if defined(MSCCLC_TSAN)
  __tsan_switch_to_fiber(tsan_resumer_, 0);
#endif
  switch_context(own_, resumer_);
#if defined(MSCCLC_ASAN)
  __sanitizer_finish_switch_fiber(own_fake_stack_, &resumer_stack_, &resumer_bytes_);
#endif
}

void Fiber::leave() {
  left_ = true;
  suspend();
  std::abort();  // it was resumed
}

MSCCLC_NO_TSAN void Fiber::main(void* self) {
  auto* fiber = static_cast<Fiber*>(self);
#if defined(MSCCLC_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &fiber->resumer_stack_, &fiber->resumer_bytes_);
#endif
  fiber->function_(fiber->argument_);
  fiber->ended_ = true;
  fiber->suspend();
}

}  // namespace mscclc
