// Lanes over sockets: what arrives, and in what order.
#include "runtime/network/sockets/socket_lane.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "executor/shared_atomics.h"
#include "tests/helpers/network/socket_world.h"

namespace mscclc::net {
namespace {

using std::chrono::milliseconds;
using testing::kWorldBytes;
using testing::SocketWorld;
using testing::Window;

std::vector<uint8_t> pattern(size_t count, uint64_t seed) {
  std::vector<uint8_t> data(count);
  testing::fill(data.data(), count, seed);
  return data;
}

TEST_CASE("a note is taken before what is ordered after it, on whichever connection") {
  for (const uint32_t workers : {0u, 2u}) {
    for (const uint32_t connections : {1u, 5u}) {
      std::vector<uint8_t> data(kWorldBytes);  // what lanes read and write outlives the world
      SocketWorld world(connections, false, workers);
      world.open();
      testing::check_notes(world, *world.lane, data.data());
      world.lane.reset();
      world.end.reset();
    }
  }
}

TEST_CASE("a count comes after what was put before it") {
  for (const uint32_t workers : {0u, 2u}) {
    for (const uint32_t connections : {1u, 2u, 5u}) {
      SocketWorld world(connections, connections == 2, workers);
      world.open();
      testing::check_counts(world);
      world.lane.reset();
      world.end.reset();
      CHECK(world.text() == "");
      CHECK(world.far_reports.text() + world.near_reports.text() == "");
    }
  }
}

void check_cuts(uint32_t workers) {
  SocketWorld world(3, false, workers);
  world.open_over_relay();
  for (const size_t most : {size_t{4093}, size_t{10'007}, size_t{60'000}}) {
    world.relay->dribble(most);
    std::vector<std::vector<uint8_t>> all;
    for (uint64_t i = 0; i < 4; ++i) {
      all.push_back(pattern((512 << 10) + 100 * i, most + i));
      CHECK(world.lane->put(world.at(4096 + (i << 20)), all.back().data(), all.back().size(),
                            world.diagnostics));
    }
    CHECK(world.lane->signal(world.at(8), most, world.diagnostics));
    uint64_t own = 0;  // until then the bytes are the lane's
    CHECK(world.lane->complete(&own, most, world.diagnostics));
    world.await_count(8, most);
    while (load_acquire<uint64_t>(&own) != most) std::this_thread::yield();
    for (uint64_t i = 0; i < 4; ++i) {
      CHECK(std::equal(all[i].begin(), all[i].end(), world.data() + 4096 + (i << 20)));
    }
  }
}

TEST_CASE("a count comes after what was put before it, however the network splits the bytes") {
  for (const uint32_t workers : {0u, 3u}) check_cuts(workers);
}

void check_order(uint32_t workers) {
  std::vector<std::vector<uint8_t>> all;
  SocketWorld world(4, false, workers);
  world.open();
  for (uint64_t i = 0; i < 200; ++i) {
    all.push_back(pattern(i % 3 == 0 ? 600'000 : 300'000, i));
    CHECK(world.lane->put(world.at(262'000 - 8 * (i % 5)), all.back().data(), all.back().size(),
                          world.diagnostics));
    CHECK(world.lane->signal(world.at(0), i + 1, world.diagnostics));
    CHECK(world.word(0) <= i + 1);
  }
  CHECK(world.lane->flush(world.diagnostics));
  CHECK(world.word(0) == 200);
  CHECK(std::equal(all.back().begin(), all.back().end(), world.data() + 262'000 - 8 * (199 % 5)));
}

// The later put wins, on whichever connection; and counts never go back.
TEST_CASE("puts to one place, and counts, keep their order") {
  for (const uint32_t workers : {0u, 3u}) check_order(workers);
}

// A count is set when all orders before it have been sent.
TEST_CASE("short orders of a corked lane wait for uncork(), long ones do not") {
  const std::vector<uint8_t> bytes(64 << 10, 7);
  uint64_t own = 0;
  SocketWorld world(1);
  world.open();
  const auto put = [&](uint64_t count) {
    return world.lane->put(world.at(64), bytes.data(), count, world.diagnostics);
  };
  world.lane->cork();
  CHECK(put(1000));
  CHECK(world.lane->signal(world.at(0), 1, world.diagnostics));
  CHECK(world.lane->complete(&own, 1, world.diagnostics));
  CHECK(own == 0);
  CHECK(world.word(0) == 0);
  CHECK(world.lane->uncork(world.diagnostics));
  CHECK(own == 1);
  world.await_count(0, 1);
  CHECK(world.data()[64 + 999] == 7);
  world.lane->cork();
  CHECK(put(bytes.size()));
  CHECK(world.lane->complete(&own, 2, world.diagnostics));
  while (load_acquire<uint64_t>(&own) != 2) std::this_thread::yield();  // as the socket has room
  for (int i = 0; i < 16; ++i) CHECK(put(8));
  CHECK(world.lane->complete(&own, 3, world.diagnostics));
  while (load_acquire<uint64_t>(&own) != 3) std::this_thread::yield();
  CHECK(world.lane->uncork(world.diagnostics));
  CHECK(world.lane->flush(world.diagnostics));
  CHECK(world.text() == "");
}

// The hand is busy, so what falls to it is not sent.
TEST_CASE("short puts and their counts need no hand, but stay after a long one") {
  const std::vector<uint8_t> bytes(64 << 10, 7);
  uint64_t own = 0;
  std::atomic<bool> busy{true};
  SocketWorld world(1, false, 1);
  world.open();
  world.near->workers()->give([&] {
    while (busy) std::this_thread::yield();
  });
  const auto send = [&](uint64_t count, uint64_t value) {
    CHECK(world.lane->put(world.at(64), bytes.data(), count, world.diagnostics));
    CHECK(world.lane->signal(world.at(0), value, world.diagnostics));
    CHECK(world.lane->complete(&own, value, world.diagnostics));
  };
  send(1000, 1);
  CHECK(own == 1);
  world.await_count(0, 1);
  send(bytes.size(), 2);
  send(1000, 3);
  CHECK(load_acquire<uint64_t>(&own) == 1);
  CHECK(world.word(0) == 1);
  busy = false;
  world.await_count(0, 3);
  CHECK(world.lane->flush(world.diagnostics));
  CHECK(own == 3);
  CHECK(world.data()[64 + bytes.size() - 1] == 7);
  CHECK(world.text() == "");
}

TEST_CASE("places outside a region, or of no region of lanes, are refused at once") {
  SocketWorld world;
  world.open();
  testing::check_refused_places(world, *world.lane);
}

TEST_CASE("the far end takes no orders for memory that it has not exposed, and both ends say so") {
  for (const bool signal : {false, true}) {
    SocketWorld world;
    world.open();
    const Window forged(world.id, 2 * kWorldBytes);
    const uint64_t value = 1;
    // The far end may have refused before the call returns.
    const bool given = signal
                           ? world.lane->signal({&forged, kWorldBytes}, 1, world.diagnostics)
                           : world.lane->put({&forged, kWorldBytes}, &value, 8, world.diagnostics);
    CHECK(!(given && world.lane->flush(world.diagnostics)));
    CHECK(world.text() ==
          "error: rank 3 ends its lane: the lane of rank 5 brings 8 bytes at byte 8388608 of "
          "memory 1, which it may not write\n");
    CHECK(world.far_reports.wait() ==
          "the lane of rank 5 brings 8 bytes at byte 8388608 of memory 1, which it may not "
          "write\n");
    CHECK(!world.lane->put(world.at(0), &value, 8, world.diagnostics));
    CHECK(!world.lane->signal(world.at(0), 1, world.diagnostics));
    CHECK(!world.lane->complete(nullptr, 1, world.diagnostics));
  }
}

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A lane that polls uses the processor in every window; on a busy machine its threads fall asleep
// late, and a sanitizer's own thread works now and then.
TEST_CASE("an idle lane uses no processor") {
  const bool alert = GENERATE(false, true);
  SocketWorld world(3, alert);
  world.open();
  testing::check_counts(world);
  double least = 1;
  for (int window = 0; window < 40 && least >= 0.01; ++window) {
    const double before = processor_seconds();
    std::this_thread::sleep_for(milliseconds(250));
    least = std::min(least, processor_seconds() - before);
  }
  CHECK(least < 0.01);
}

}  // namespace
}  // namespace mscclc::net
