// Threads that carry long puts: any of them takes what has waited longest, and nothing is left.
#include "runtime/network/threads/copy_workers.h"

#include <catch2/catch.hpp>
#include <future>
#include <thread>
#include <vector>

namespace mscclc::net {
namespace {

std::unique_ptr<CopyWorkers> start(uint32_t count) {
  Diagnostics diagnostics;
  return CopyWorkers::start(count, std::chrono::microseconds(100), {}, diagnostics);
}

TEST_CASE("a rank's workers go by its share of the processors") {
  CHECK(workers_of_gpu(16, 1) == 4);
  CHECK(workers_of_gpu(32, 2) == 4);
  CHECK(workers_of_gpu(128, 8) == 4);
  CHECK(workers_of_gpu(8, 1) == 2);
  CHECK(workers_of_gpu(2, 1) == 0);
  CHECK(workers_of_gpu(32, 8) == 0);
  CHECK(workers_of_gpu(1024, 8) == 8);
  CHECK(workers_of_gpu(32, 0) == 8);  // the system does not show its GPUs
}

TEST_CASE("all workers work at once, whichever thread gives the work") {
  std::atomic<int> busy{0};
  std::promise<void> all;
  const auto workers = start(3);
  REQUIRE(workers != nullptr);
  for (int i = 0; i < 3; ++i) {
    workers->give([&] {
      if (++busy == 3) all.set_value();
      while (busy < 3) std::this_thread::yield();
    });
  }
  all.get_future().wait();
  CHECK(busy == 3);
}

TEST_CASE("work that no hand has begun makes them wanted, and is done in its order") {
  auto workers = start(1);
  REQUIRE(workers != nullptr);
  CHECK(!workers->are_wanted());
  std::promise<void> begun;
  std::atomic<bool> busy{true};
  workers->give([&] {
    begun.set_value();
    while (busy) std::this_thread::yield();
  });
  begun.get_future().wait();
  CHECK(!workers->are_wanted());
  std::vector<int> order;
  for (int i = 0; i < 4; ++i) workers->give([&order, i] { order.push_back(i); });
  CHECK(workers->are_wanted());
  busy = false;
  workers.reset();  // waits for all of it
  CHECK(order == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("work may give more work, which is done before the workers end") {
  auto workers = start(2);
  REQUIRE(workers != nullptr);
  std::atomic<int> done{0};
  workers->give([&, all = workers.get()] {
    for (int i = 0; i < 10; ++i) all->give([&] { ++done; });
  });
  workers.reset();
  CHECK(done == 10);
}

}  // namespace
}  // namespace mscclc::net
