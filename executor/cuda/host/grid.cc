#include "executor/cuda/host/grid.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "executor/cuda/host/cuda_words.h"

namespace mscclc::cuda::host {
namespace {

constexpr uint8_t kPoison = 0xa5;        // what shared memory holds at first
constexpr uint64_t kPause = 50'000'000;  // nanoseconds that pass when nothing can move
constexpr uint32_t kMaxPauses = 1000;    // in a row; then it hangs
constexpr size_t kMaxLate = 64;          // stores of a block that are late at once
constexpr uint32_t kWarp = 32;

std::unique_ptr<uint8_t[]> poisoned(uint64_t bytes) {
  std::unique_ptr<uint8_t[]> made(new uint8_t[bytes]);
  std::fill_n(made.get(), bytes, kPoison);
  return made;
}

}  // namespace

Machine& Machine::get() {
  static Machine machine;
  return machine;
}

Gpu& Gpu::get() { return Machine::get().gpu; }

void Gpu::set_seed(uint64_t seed) {
  seed_ = seed;
  dice_ = Dice(seed);
  const bool by_priority = seed != 0 && dice_.below(2) == 0;
  queue_.set_order(seed == 0     ? RunQueue::Order::in_turn
                   : by_priority ? RunQueue::Order::by_priority
                                 : RunQueue::Order::random);
  most_at_once_ = 0;
  lazy_services_ = seed != 0 && dice_.below(2) == 0;
}

// Launches.

void Gpu::launch(Stream& stream, const Shape& shape, std::function<void()> kernel) {
  auto made = std::make_shared<Launch>();
  made->shape = shape;
  made->kernel = std::move(kernel);
  if (!stream.empty()) made->ahead = stream.back();
  stream.push_back(std::move(made));
  ++live_launches_;
  if (std::find(streams_.begin(), streams_.end(), &stream) == streams_.end()) {
    streams_.push_back(&stream);
  }
}

bool Gpu::may_begin(const Launch& launch) const {
  if (launch.begun) return false;
  if (launch.ahead == nullptr || launch.ahead->ended) return true;
  const Launch& ahead = *launch.ahead;
  return launch.shape.early && ahead.begun && ahead.freed_blocks == ahead.shape.blocks;
}

/// True if a launch has begun.
bool Gpu::begin_launches() {
  bool any = false;
  if (!look_for_launches_) return false;
  look_for_launches_ = false;
  for (Stream* stream : streams_) {
    for (const std::shared_ptr<Launch>& launch : *stream) {
      if (!may_begin(*launch)) continue;
      if (is_adversarial() && !queue_.empty() && dice_.below(8) != 0) {  // later
        look_for_launches_ = true;
        continue;
      }
      begin(*launch);
      any = true;
    }
  }
  return any;
}

void Gpu::begin(Launch& launch) {
  launch.begun = true;
  uint32_t at_once = 0;
  for (const Launch* l = &launch; l != nullptr && !l->ended; l = l->ahead.get()) ++at_once;
  most_at_once_ = std::max(most_at_once_, at_once);
  if (launch.shape.blocks == 0) {  // of the host
    launch.kernel();
    return end_launch(launch);
  }
  launch.live_blocks = launch.shape.blocks;
  for (uint32_t b = 0; b < launch.shape.blocks; ++b) {
    Block& block = launch.blocks.emplace_back();
    block.launch = &launch;
    block.index = b;
    block.live = launch.shape.threads;
    block.dynamic = poisoned(launch.shape.shared_bytes);
    for (uint32_t t = 0; t < launch.shape.threads; ++t) {
      Thread& thread = block.threads.emplace_back();
      thread.block = &block;
      thread.index = t;
      thread.priority = dice_.next();
      thread.fiber = fibers_.take();
      if (thread.fiber == nullptr) {
        std::fputs("no memory for the fibers of a grid\n", stderr);
        std::abort();
      }
      thread.fiber->start(&Gpu::main, this);
      queue_.add(thread);
    }
  }
}

void Gpu::end_launch(Launch& launch) {
  for (Block& block : launch.blocks) block.late.do_all();
  launch.ended = true;
  launch.ahead.reset();
  --live_launches_;
  look_for_launches_ = true;
  note_change();
}

// Threads.

void Gpu::main(void* gpu) {
  auto* self = static_cast<Gpu*>(gpu);
  self->now_->block->launch->kernel();
  self->end_thread();
}

void Gpu::end_thread() {
  end();
  now_->fiber->leave();
}

void Gpu::end() {
  Block& block = *now_->block;
  now_->state = Thread::State::ended;
  --block.live;
  complete_meetings(block);
  if (block.live != 0) return;
  Launch& launch = *block.launch;
  if (!block.frees_next) ++launch.freed_blocks;
  if (--launch.live_blocks == 0) end_launch(launch);
}

void Gpu::suspend(Thread::State state) {
  Thread& self = *now_;
  self.state = state;
  if (state == Thread::State::ready) queue_.add(self);
  if (state == Thread::State::polling) queue_.add_polling(self);
  self.fiber->suspend();
}

void Gpu::hand_over() { suspend(Thread::State::ready); }

void Gpu::await_change() {
  now_->seen = changes_;
  suspend(Thread::State::polling);
}

void Gpu::meet_block() {
  ++now_->block->arrived;
  now_->state = Thread::State::at_block;
  complete_meetings(*now_->block);
  now_->fiber->suspend();
}

void Gpu::meet_cluster() {
  ++now_->block->at_cluster;
  now_->state = Thread::State::at_cluster;
  complete_meetings(*now_->block);
  now_->fiber->suspend();
}

namespace {

/// Lets the threads of a block's cluster go, if all have come that have not ended. Stores before
/// need not be seen after.
void complete_cluster(Block& block, RunQueue& queue) {
  std::deque<Block>& blocks = block.launch->blocks;
  const uint32_t size = block.launch->shape.cluster, first = block.index / size * size;
  uint32_t arrived = 0, live = 0;
  for (uint32_t b = first; b < first + size; ++b) {
    arrived += blocks[b].at_cluster;
    live += blocks[b].live;
  }
  if (arrived == 0 || arrived != live) return;
  for (uint32_t b = first; b < first + size; ++b) {
    blocks[b].at_cluster = 0;
    for (Thread& thread : blocks[b].threads) {
      if (thread.state == Thread::State::at_cluster) queue.add(thread);
    }
  }
}

}  // namespace

uint32_t Gpu::meet_warp(uint32_t mask, uint32_t vote) {
  now_->mask = mask;
  now_->vote = vote;
  now_->state = Thread::State::at_warp;
  complete_meetings(*now_->block);
  now_->fiber->suspend();
  return now_->ballot;
}

namespace {

/// Lets the threads of the warp from `first` on go that meet with `mask`, if all have come that
/// have not ended. True: they go.
bool warp_is_here(const std::deque<Thread>& threads, uint32_t first, uint32_t mask,
                  uint32_t& ballot) {
  ballot = 0;
  for (uint32_t lane = 0; lane < kWarp && first + lane < threads.size(); ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const Thread& thread = threads[first + lane];
    if (thread.state == Thread::State::ended) continue;
    if (thread.state != Thread::State::at_warp || thread.mask != mask) return false;
    if (thread.vote != 0) ballot |= 1u << lane;
  }
  return true;
}

}  // namespace

/// Of the block, its cluster, and the running thread's warp: threads that have ended are not waited
/// for.
void Gpu::complete_meetings(Block& block) {
  if (block.arrived != 0 && block.arrived == block.live) {
    block.arrived = 0;
    block.late.meet();
    for (Thread& thread : block.threads) {
      if (thread.state == Thread::State::at_block) queue_.add(thread);
    }
  }
  complete_cluster(block, queue_);
  const uint32_t first = now_->index / kWarp * kWarp;
  for (uint32_t lane = 0; lane < kWarp && first + lane < block.threads.size(); ++lane) {
    Thread& thread = block.threads[first + lane];
    uint32_t ballot = 0;
    if (thread.state != Thread::State::at_warp) continue;
    const uint32_t mask = thread.mask;
    if (warp_is_here(block.threads, first, mask, ballot)) {
      complete_warp(block, first, mask, ballot);
    }
  }
}

void Gpu::complete_warp(Block& block, uint32_t first, uint32_t mask, uint32_t ballot) {
  Thread* const self = now_;
  together_ = ++groups_;
  for (uint32_t lane = 0; lane < kWarp && first + lane < block.threads.size(); ++lane) {
    Thread& met = block.threads[first + lane];
    if (met.state != Thread::State::at_warp || met.mask != mask) continue;
    now_ = &met;
    if (met.access) std::exchange(met.access, {})();
    met.ballot = ballot;
    queue_.add(met);
  }
  now_ = self;
  together_ = 0;
}

void Gpu::access_together(uint32_t mask, std::function<void()> access) {
  step();
  now_->access = std::move(access);
  meet_warp(mask, 0);
}

void Gpu::let_next_begin() {
  Block& block = *now_->block;
  if (block.frees_next) return;
  block.frees_next = true;
  ++block.launch->freed_blocks;
  look_for_launches_ = true;
}

void Gpu::await_launch_ahead() {
  while (now_->block->launch->ahead != nullptr && !now_->block->launch->ahead->ended) {
    await_change();
  }
}

void* Gpu::shared(const void* key, uint64_t bytes) {
  Block& block = *now_->block;
  if (key == nullptr) return block.dynamic.get();
  for (const SharedVariable& variable : block.variables) {
    if (variable.key == key) return variable.bytes.get();
  }
  return block.variables.emplace_back(SharedVariable{key, poisoned(bytes)}).bytes.get();
}

void* Gpu::shared_of_part(uint32_t part, const void* key) {
  const Block& own = *now_->block;
  const uint32_t size = own.launch->shape.cluster;
  const Block& block = own.launch->blocks[own.index / size * size + part];
  for (const SharedVariable& variable : block.variables) {
    if (variable.key == key && block.live != 0) return variable.bytes.get();
  }
  std::fputs("a block sends to the shared memory of one that has none, or has ended\n", stderr);
  std::abort();
}

// Stores.

void Gpu::store(void* to, const void* from, uint32_t bytes) {
  if (together_ == 0) step();
  note_change();
  if (!is_adversarial()) {
    std::memcpy(to, from, bytes);
    return;
  }
  LateStores& late = now_->block->late;
  late.add(now_->index, to, from, bytes, together_);
  if (late.count() > kMaxLate && together_ == 0) late.do_any(dice_);
}

void Gpu::settle(const void* at, uint32_t bytes) {
  if (is_adversarial()) now_->block->late.settle(now_->index, at, bytes);
}

void Gpu::publish() {
  if (is_adversarial()) now_->block->late.settle(now_->index);
}

// What runs next.

bool Gpu::serve() {
  const bool any = services_.serve();
  if (any) note_change();
  return any;
}

/// True if a store that was late has been done.
bool Gpu::store_late() {
  for (Stream* stream : streams_) {
    for (const std::shared_ptr<Launch>& launch : *stream) {
      for (Block& block : launch->blocks) {
        if (!block.late.do_any(dice_)) continue;
        note_change();
        return true;
      }
    }
  }
  return false;
}

void Gpu::resume(Thread& thread) {
  now_ = &thread;
  here_.thread.x = thread.index;
  here_.block.x = thread.block->index;
  here_.block_size.x = thread.block->launch->shape.threads;
  here_.cluster_blocks = thread.block->launch->shape.cluster;
  thread.fiber->resume();
  if (thread.state != Thread::State::ended) return;
  fibers_.give(thread.fiber);
  thread.fiber = nullptr;
}

/// Does something; false: nothing can move.
bool Gpu::move() {
  if (is_adversarial() && dice_.below(8) == 0) queue_.wake_one(dice_);
  if (is_adversarial() && !lazy_services_ && dice_.below(16) == 0 && serve()) return true;
  if (is_adversarial() && dice_.below(32) == 0 && store_late()) return true;
  if (!queue_.empty()) {
    resume(queue_.take(dice_));
    return true;
  }
  return queue_.wake_pollers(changes_, false) || serve() || store_late();
}

/// Ends all that is left: it hangs.
void Gpu::abandon() {
  for (Stream* stream : streams_) {
    for (const std::shared_ptr<Launch>& launch : *stream) {
      for (Block& block : launch->blocks) {
        for (Thread& thread : block.threads) {
          if (thread.fiber != nullptr) fibers_.give(thread.fiber);
        }
      }
    }
  }
  queue_.clear();
}

bool Gpu::run() {
  uint32_t pauses = 0;
  uint64_t changes = 0;
  look_for_launches_ = true;
  while (live_launches_ != 0) {
    if (begin_launches() || move()) continue;
    if (changes != changes_) pauses = 0;
    changes = changes_;
    clock_ += kPause;
    if (waits_for_host_) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (++pauses > kMaxPauses || !queue_.wake_pollers(changes_, true)) break;
  }
  const bool ended = live_launches_ == 0;
  if (!ended) abandon();
  live_launches_ = 0;
  for (Stream* stream : streams_) stream->clear();
  streams_.clear();
  while (serve()) {
  }
  return ended;
}

}  // namespace mscclc::cuda::host

using mscclc::cuda::host::Gpu;

const dim3& threadIdx = Gpu::get().here().thread;
const dim3& blockIdx = Gpu::get().here().block;
const dim3& blockDim = Gpu::get().here().block_size;

void __syncthreads() {
  Gpu::get().step();
  Gpu::get().meet_block();
}
void __syncwarp(uint32_t mask) { Gpu::get().meet_warp(mask, 0); }
uint32_t __ballot_sync(uint32_t mask, uint32_t vote) { return Gpu::get().meet_warp(mask, vote); }

unsigned long long atomicAdd(unsigned long long* count, unsigned long long more) {
  Gpu::get().step();
  Gpu::get().note_change();
  const unsigned long long before = *count;
  *count = before + more;
  return before;
}
namespace {

template <class Word>
Word or_at_once(Word* word, Word bits) {
  Gpu::get().step();
  Gpu::get().note_change();
  const Word before = *word;
  *word = before | bits;
  return before;
}

}  // namespace

unsigned long long atomicOr(unsigned long long* word, unsigned long long bits) {
  return or_at_once(word, bits);
}
uint32_t atomicOr(uint32_t* word, uint32_t bits) { return or_at_once(word, bits); }
void __threadfence_system() { Gpu::get().publish(); }
