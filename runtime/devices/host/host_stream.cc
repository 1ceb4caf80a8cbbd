#include "runtime/devices/host/host_stream.h"

#include <cstring>
#include <deque>
#include <new>
#include <vector>

#include "executor/cpu/scale.h"
#include "runtime/devices/host/process_machine.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {
namespace {

/// A block of a launch.
struct Block {
  Fiber* fiber;
  ProcessMachine machine;
  Block(const device::LaunchPlan& plan, uint32_t number, Fiber* fiber)
      : fiber(fiber), machine(plan, number, *fiber) {}
  bool over() const { return fiber->ended() || machine.gave_up(); }
};

void run_block(void* block) { static_cast<Block*>(block)->machine.run(); }

/// Lets every block run in turn until it waits; rests while none can move.
void run_in_turns(std::vector<Block*> running, Idle& idle) {
  idle.reset();
  while (!running.empty()) {
    bool moved = false;
    for (Block* block : running) {
      block->fiber->resume();
      moved |= block->machine.moved() || block->over();
    }
    std::erase_if(running, [](const Block* block) { return block->over(); });
    if (moved) {
      idle.reset();
    } else {
      idle.rest();
    }
  }
}

}  // namespace

Ended run_launch(const device::LaunchPlan& plan, FiberPool& fibers, Idle& idle) {
  std::deque<Block> blocks;
  std::vector<Block*> running;
  for (uint32_t i = 0; i < plan.blocks; ++i) {
    Fiber* fiber = fibers.take();
    if (fiber == nullptr) break;
    Block& block = blocks.emplace_back(plan, i, fiber);
    fiber->start(run_block, &block);
    running.push_back(&block);
  }
  const bool complete = blocks.size() == plan.blocks;
  if (complete) run_in_turns(running, idle);
  bool gave_up = false;
  for (const Block& block : blocks) {
    gave_up |= block.machine.gave_up();
    fibers.give(block.fiber);
  }
  return !complete ? Ended::no_memory : gave_up ? Ended::gave_up : Ended::well;
}

HostStream::HostStream() {
  thread_ = quiet_thread("mscclc-stream", [this] { serve(); });
}

std::unique_ptr<HostStream> HostStream::create(Diagnostics& diagnostics) {
  std::unique_ptr<HostStream> stream(new HostStream);
  return has_started(stream->thread_, "a stream of the host", diagnostics) ? std::move(stream)
                                                                           : nullptr;
}

HostStream::~HostStream() {
  if (!thread_.joinable()) return;  // it could not be started
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HostStream::push(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void HostStream::launch(const device::LaunchPlan& plan, std::shared_ptr<void> queued) {
  push({[this, plan, queued = std::move(queued)] {
    const Ended ended = run_launch(plan, fibers_, idle_);
    const std::lock_guard lock(mutex_);
    gave_up_ |= ended == Ended::gave_up;
    if (ended != Ended::no_memory) return;
    failure_ = "no memory for the stacks of " + std::to_string(plan.blocks) + " thread blocks";
  }});
}

void HostStream::copy(void* to, const void* from, uint64_t bytes, std::shared_ptr<void> queued) {
  if (bytes == 0) return;
  push({[=, queued = std::move(queued)] { std::memmove(to, from, bytes); }});
}

void HostStream::scale(const Scaling& what, std::shared_ptr<void> queued) {
  push({[what, queued = std::move(queued)] {
    mscclc::scale(what.dtype, what.to, what.from, what.count, what.factor);
  }});
}

void HostStream::call(std::function<void()> work, std::shared_ptr<void> queued, bool always) {
  push({[work = std::move(work), queued = std::move(queued)] { work(); }, always});
}

void HostStream::mark(std::shared_ptr<std::atomic<bool>> flag) {
  push({[flag = std::move(flag)] {
          flag->store(true, std::memory_order_release);
          flag->notify_all();
        },
        true});
}

void HostStream::wait_for(std::shared_ptr<std::atomic<bool>> flag) {
  push({[flag = std::move(flag)] { flag->wait(false, std::memory_order_acquire); }});
}

Result<void> HostStream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
  gave_up_ = false;
  if (failure_.empty()) return {};
  return Error{std::exchange(failure_, {})};
}

void HostStream::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
}

/// False: there was no memory for it.
bool HostStream::run(const Task& task) {
  try {
    task.run();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void HostStream::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    if (!gave_up_ || task.always) {
      busy_ = true;
      lock.unlock();
      const bool ran = run(task);
      lock.lock();
      if (!ran) failure_ = "no memory for a call";
      busy_ = false;
    }
    if (tasks_.empty()) changed_.notify_all();
  }
}

}  // namespace mscclc
