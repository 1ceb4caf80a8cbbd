#include "tests/rows/host_block.h"

#include <cstdio>
#include <cstdlib>

namespace mscclc::rows {
namespace {

struct Thread {
  HostBlock block;
  const std::function<void(HostBlock&)>* body;
  Fiber* fiber;

  static void main(void* self) {
    Thread& thread = *static_cast<Thread*>(self);
    (*thread.body)(thread.block);
  }
};

}  // namespace

void run_block(FiberPool& pool, uint32_t count, Dice& dice,
               const std::function<void(HostBlock&)>& body) {
  std::vector<float> shared(count), lanes(count);
  std::vector<Thread> threads;
  threads.reserve(count);
  for (uint32_t t = 0; t < count; ++t) {
    Fiber* const fiber = pool.take();
    if (fiber == nullptr) {
      std::fprintf(stderr, "no memory for %u fibers\n", count);
      std::abort();
    }
    threads.push_back({HostBlock(t, count, shared.data(), lanes.data(), fiber), &body, fiber});
    fiber->start(&Thread::main, &threads.back());
  }
  uint32_t ended = 0;
  while (ended < count) {
    const uint32_t first = dice.below(count);
    const bool forwards = dice.below(2) == 0;
    ended = 0;
    for (uint32_t i = 0; i < count; ++i) {
      Fiber& fiber = *threads[(forwards ? first + i : first + count - i) % count].fiber;
      fiber.resume();
      ended += fiber.ended() ? 1 : 0;
    }
    if (ended != 0 && ended != count) {
      std::fprintf(stderr, "%u of %u threads do not meet the others\n", ended, count);
      std::abort();
    }
  }
  for (const Thread& thread : threads) pool.give(thread.fiber);
}

}  // namespace mscclc::rows
