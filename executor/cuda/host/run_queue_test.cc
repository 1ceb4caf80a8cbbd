#include "executor/cuda/host/run_queue.h"

#include <catch2/catch.hpp>
#include <set>

namespace mscclc::cuda::host {
namespace {

TEST_CASE("threads run in turn, or as dice say, and each once") {
  for (const auto order :
       {RunQueue::Order::in_turn, RunQueue::Order::random, RunQueue::Order::by_priority}) {
    Thread threads[5];
    RunQueue queue;
    Dice dice(7);
    queue.set_order(order);
    for (Thread& thread : threads) queue.add(thread);
    std::set<Thread*> taken;
    for (Thread& thread : threads) {
      Thread& next = queue.take(dice);
      if (order == RunQueue::Order::in_turn) CHECK(&next == &thread);
      taken.insert(&next);
    }
    CHECK(taken.size() == 5);
    CHECK(queue.empty());
  }
}

TEST_CASE("most often the thread of the highest priority runs first") {
  uint32_t first = 0;
  Dice dice(3);
  for (uint32_t trial = 0; trial < 100; ++trial) {
    Thread low, high;
    high.priority = 1;
    RunQueue queue;
    queue.set_order(RunQueue::Order::by_priority);
    queue.add(low);
    queue.add(high);
    if (&queue.take(dice) == &high) ++first;
  }
  CHECK(first > 80);
}

TEST_CASE("pollers wake where something has changed, and all where all must") {
  Thread saw_all, saw_less;
  RunQueue queue;
  Dice dice(1);
  saw_all.seen = 9;
  saw_less.seen = 8;
  queue.add_polling(saw_all);
  queue.add_polling(saw_less);
  CHECK(queue.wake_pollers(9, false));
  CHECK(&queue.take(dice) == &saw_less);
  CHECK_FALSE(queue.wake_pollers(9, false));
  CHECK(queue.wake_pollers(9, true));
  CHECK(&queue.take(dice) == &saw_all);
  queue.add_polling(saw_all);
  queue.wake_one(dice);
  CHECK(&queue.take(dice) == &saw_all);
}

}  // namespace
}  // namespace mscclc::cuda::host
