// How lanes over sockets end, and which end reports what went wrong.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/helpers/network/socket_world.h"
#include "tests/helpers/runtime/descriptors.h"

namespace mscclc::net {
namespace {

using testing::kWorldBytes;
using testing::SocketWorld;
using testing::Window;

TEST_CASE("an end of a lane that finds no memory ends it, and both ends say so") {
  for (const bool alert : {false, true}) {
    SocketWorld world(2, alert);
    world.open();
    testing::check_lack_of_memory(world, *world.lane);
    world.lane.reset();
    world.end.reset();
  }
}

void check_leave(uint32_t workers) {
  const std::vector<uint8_t> bytes(kWorldBytes);
  SocketWorld world(3, workers > 0, workers);
  world.open();
  world.end.reset();
  testing::check_needs_no_more(world, *world.lane, bytes.data());
}

TEST_CASE("a far end that goes in good order needs no more, however much is put") {
  for (const uint32_t workers : {0u, 2u}) check_leave(workers);
}

// Its workers are in the middle of a put then.
TEST_CASE("ends of a lane go while much is on its way") {
  for (const bool far_first : {true, false}) {
    const std::vector<uint8_t> bytes(kWorldBytes);
    SocketWorld world(4, false, 4);
    world.open();
    for (int i = 0; i < 20; ++i) {
      CHECK(world.lane->put(world.at(0), bytes.data(), kWorldBytes, world.diagnostics));
    }
    if (far_first) world.end.reset();
    world.lane.reset();
    if (far_first) CHECK(world.far_reports.text() == "");
    CHECK(world.text() == "");
  }
}

void check_cut(uint64_t after, uint32_t workers) {
  const std::vector<uint8_t> bytes(kWorldBytes);  // the lane's until it has gone
  SocketWorld world(3, false, workers);
  world.open_over_relay();
  world.relay->cut_after(world.relay->passed() + after);
  while (world.lane->put(world.at(0), bytes.data(), kWorldBytes, world.diagnostics) &&
         world.lane->flush(world.diagnostics)) {
  }
  CHECK_THAT(world.text(), Catch::StartsWith("error: the lane to rank 3 has ended: its "));
  CHECK_THAT(world.far_reports.wait(), Catch::StartsWith("the lane of rank 5 has ended: its "));
}

TEST_CASE("a connection that is cut is reported at both ends") {
  for (const uint64_t after : {0, 1000, 3'000'000}) {
    for (const uint32_t workers : {0u, 2u}) check_cut(after, workers);
  }
}

TEST_CASE("a connection that is cut while nothing is asked for is reported at both ends") {
  SocketWorld world;
  world.open_over_relay();
  CHECK(world.lane->flush(world.diagnostics));
  world.relay->cut_after(0);
  CHECK_THAT(world.near_reports.wait(), Catch::StartsWith("the lane to rank 3 has ended: its "));
  CHECK_THAT(world.far_reports.wait(), Catch::StartsWith("the lane of rank 5 has ended: its "));
  CHECK(!world.lane->flush(world.diagnostics));
}

// What a stopped process does: it neither reads nor ends. The lane takes what its queue holds, and
// does not wait for the peer at each; then it waits.
void check_over(uint32_t workers) {
  const std::vector<uint8_t> bytes(kWorldBytes);
  uint64_t own = 0;  // which the lane may write as long as there is one
  SocketWorld world(2, false, workers);
  world.open_over_relay();
  world.relay->hold_after(0);
  std::atomic<uint64_t> puts = 0;
  std::atomic<bool> ended = false;
  std::thread failure([&] {
    while (puts <= 10 && !ended) std::this_thread::yield();
    world.over = true;
  });
  while (world.lane->put(world.at(0), bytes.data(), kWorldBytes, world.diagnostics)) {
    if (++puts == 1000) break;
    CHECK(world.lane->complete(&own, 1, world.diagnostics));
  }
  ended = true;
  failure.join();
  CHECK(puts > 10);
  CHECK(puts < 1000);
  CHECK(world.text() == "error: rank 3 takes no orders, and the communicator has failed\n");
  CHECK(!world.lane->flush(world.diagnostics));
}

TEST_CASE("an order that waits for its peer ends with the communicator") {
  for (const uint32_t workers : {0u, 2u}) check_over(workers);
}

TEST_CASE("lanes leave no descriptors, however they end") {
  const size_t before = mscclc::testing::open_descriptors();
  for (int way = 0; way < 4; ++way) {
    const std::vector<uint8_t> bytes(kWorldBytes);
    SocketWorld world;
    world.open();
    CHECK(world.lane->put(world.at(0), bytes.data(), kWorldBytes, world.diagnostics));
    if (way == 0) world.lane.reset();
    if (way == 1) world.end.reset();
    if (way == 2) {
      const Window forged(world.id, 2 * kWorldBytes);
      const bool given = world.lane->signal({&forged, kWorldBytes}, 1, world.diagnostics);
      CHECK(!(given && world.lane->flush(world.diagnostics)));
    }
  }
  CHECK(mscclc::testing::open_descriptors() == before);
}

}  // namespace
}  // namespace mscclc::net
