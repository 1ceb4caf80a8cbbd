// The model of a GPU finds what a GPU would do to a kernel that counts on too much.
#include "executor/cuda/host/grid.h"

#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <vector>

#include "executor/cuda/host/cuda_words.h"  // before what uses them
//
#include "executor/cuda/host/access.h"

namespace mscclc::cuda::host {
namespace {

constexpr uint64_t kSeeds = 60;

/// Runs one kernel of so many blocks of 64 threads under a seed; false: it hangs.
bool run(uint64_t seed, uint32_t blocks, const std::function<void()>& kernel) {
  Gpu::get().set_seed(seed);
  Stream stream;
  Gpu::get().launch(stream, {blocks, 64, 0, false}, kernel);
  const bool ended = Gpu::get().run();
  Gpu::get().set_seed(0);
  return ended;
}

/// For how many seeds a kernel leaves another value than it should.
uint32_t wrong(uint32_t blocks, const std::function<void()>& reset,
               const std::function<void()>& kernel, const std::function<bool()>& is_right) {
  uint32_t count = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    reset();
    REQUIRE(run(seed, blocks, kernel));
    count += is_right() ? 0 : 1;
  }
  return count;
}

TEST_CASE("threads that do not meet read what others have not written yet") {
  for (const bool meet : {false, true}) {
    std::vector<uint32_t> cells(64), seen(64);
    const auto kernel = [&] {
      store_as(reinterpret_cast<uint8_t*>(&cells[threadIdx.x]), threadIdx.x + 1);
      if (meet) __syncthreads();
      seen[threadIdx.x] =
          load_as<uint32_t>(reinterpret_cast<const uint8_t*>(&cells[63 - threadIdx.x]));
    };
    const uint32_t bad = wrong(
        1, [&] { cells.assign(64, 0); }, kernel,
        [&] {
          for (uint32_t i = 0; i < 64; ++i) {
            if (seen[i] != 64 - i) return false;
          }
          return true;
        });
    CHECK((meet ? bad == 0 : bad > kSeeds / 2));
  }
}

TEST_CASE("what a relaxed signal follows may be seen late, what a release follows may not") {
  for (const bool releases : {false, true}) {
    uint64_t data = 0, count = 0, seen = 0;
    const auto kernel = [&] {
      if (threadIdx.x != 0) return;
      if (blockIdx.x == 0) {
        store_as(reinterpret_cast<uint8_t*>(&data), uint64_t{7});
        if (releases) {
          add_release(&count);
        } else {
          add_relaxed(&count);
        }
        return;
      }
      while (load_acquire(&count) == 0) after_vain_poll();
      seen = load_as<uint64_t>(reinterpret_cast<const uint8_t*>(&data));
    };
    const uint32_t bad = wrong(
        2, [&] { data = count = seen = 0; }, kernel, [&] { return seen == 7; });
    CHECK((releases ? bad == 0 : bad > 0));
  }
}

TEST_CASE("a release publishes what the block stored before its last meeting, and no more") {
  for (const bool meet : {false, true}) {
    uint64_t data = 0, count = 0, seen = 0;
    const auto kernel = [&] {
      if (blockIdx.x == 0) {
        if (threadIdx.x == 40) store_as(reinterpret_cast<uint8_t*>(&data), uint64_t{7});
        if (meet) __syncthreads();
        if (threadIdx.x == 0) add_release(&count);
      } else if (threadIdx.x == 0) {
        while (load_acquire(&count) == 0) after_vain_poll();
        seen = load_as<uint64_t>(reinterpret_cast<const uint8_t*>(&data));
      }
    };
    const uint32_t bad = wrong(
        2, [&] { data = count = seen = 0; }, kernel, [&] { return seen == 7; });
    CHECK((meet ? bad == 0 : bad > 0));
  }
}

TEST_CASE("a line is stored and loaded whole, a row of it by each lane is not") {
  for (const bool together : {false, true}) {
    alignas(16) uint4 line[8] = {};
    bool torn = false;
    const auto kernel = [&] {
      if (threadIdx.x >= 8) return;
      auto* const at = reinterpret_cast<uint8_t*>(&line[threadIdx.x]);
      if (blockIdx.x == 0) {
        const uint4 row = {1, 1, 1, 1};
        if (together) return store_line(0xff, at, row);
        return store_packet(at, row);
      }
      for (;;) {
        uint4 row;
        __syncwarp(0xff);
        load_line_if(0xff, true, at, row);
        const uint32_t come = __ballot_sync(0xff, row.x);
        if (come == 0xff) return;
        torn |= come != 0;
        after_vain_poll();
      }
    };
    const uint32_t bad = wrong(
        2,
        [&] {
          torn = false;
          for (uint4& row : line) row = {};
        },
        kernel, [&] { return !torn; });
    CHECK((together ? bad == 0 : bad > 0));
  }
}

TEST_CASE("shared memory is a block's own, and not zero at first") {
  std::set<const void*> places;
  bool zero = false;
  REQUIRE(run(0, 3, [&] {
    uint64_t& word = shared<uint64_t>();
    zero |= word == 0;
    places.insert(&word);
  }));
  CHECK(places.size() == 3);
  CHECK(!zero);
}

TEST_CASE("threads that have ended are not waited for") {
  uint32_t met = 0;
  REQUIRE(run(3, 1, [&] {
    if (threadIdx.x % 2 == 1) exit_thread();
    CHECK(__ballot_sync(0xffffffff, 1) == 0x55555555);
    __syncthreads();
    ++met;
  }));
  CHECK(met == 32);
}

TEST_CASE("what never comes is a hang, whatever the seed, and the next launch is not part of it") {
  const uint64_t count = 0;
  for (const uint64_t seed : {0, 1, 2, 3}) {
    CHECK(!run(seed, 2, [&] {
      if (threadIdx.x != 0) return __syncthreads();
      while (load_acquire(&count) == 0) after_vain_poll();
    }));
    CHECK(run(seed, 2, [] { __syncthreads(); }));
  }
}

TEST_CASE("a launch begins early once each block ahead has let it, and waits for their end") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Gpu::get().set_seed(seed);
    Stream stream;
    uint32_t freed = 0, ended = 0;
    bool too_early = false, too_late = false;
    Gpu::get().launch(stream, {2, 64, 0, false}, [&] {
      if (threadIdx.x == 0) {
        ++freed;
        launch_dependents();
      }
      for (int i = 0; i < 10; ++i) Gpu::get().step();
      if (threadIdx.x == 0) ++ended;
    });
    Gpu::get().launch(stream, {1, 64, 0, true}, [&] {
      too_early |= freed != 2;
      await_launch_ahead();
      too_late |= ended != 2;
    });
    CHECK(Gpu::get().run());
    CHECK((!too_early && !too_late));
  }
  Gpu::get().set_seed(0);
}

}  // namespace
}  // namespace mscclc::cuda::host
