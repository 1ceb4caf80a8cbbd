// Lanes over verbs between two ends of one process: what arrives, and in what order.
// The devices are fake ones, or those that MSCCLC_IBV_SO's library finds if it is set.
#include "runtime/network/verbs/verbs_lane.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "executor/shared_atomics.h"
#include "runtime/network/sockets/dial.h"
#include "runtime/network/verbs/control.h"
#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/verbs/lane_world.h"

namespace mscclc::verbs {
namespace {

using mscclc::testing::open_descriptors;
using testing::base_options;
using testing::check_counts;
using testing::fill;
using testing::kWorldBytes;
using testing::reset_fake;
using testing::Window;
using testing::World;

constexpr SignalMode kModes[] = {SignalMode::host, SignalMode::host_no_atomic};

TEST_CASE("a count comes after what was put before it") {
  const fake::FakeVerbs* const fake = reset_fake();
  for (const SignalMode mode : kModes) {
    for (const uint32_t queues : {1u, 3u}) {
      INFO(name(mode) << ", " << queues);
      VerbsOptions options = base_options();
      options.mode = mode;
      options.queues = queues;
      {
        World world(options);
        world.open();
        check_counts(world);
        world.lane.reset();
        world.end.reset();
        CHECK(world.text() == "");
        CHECK(world.far_reports.text() + world.near_reports.text() == "");
      }
      if (fake != nullptr) CHECK(fake->objects == 0);
    }
  }
}

// The later put wins, on whichever queue pair; counts never go back; and there are more signals
// than records.
TEST_CASE("puts to one place, and counts, keep their order") {
  reset_fake();
  for (const SignalMode mode : kModes) {
    VerbsOptions options = base_options();
    options.mode = mode;
    options.queues = 4;
    World world(options);
    world.open();
    const uint64_t last = 3 * kRecords;
    for (uint64_t i = 0; i < last; ++i) {
      const uint64_t bytes = i % 3 == 0 ? 60'000 : 30'000;
      uint8_t* const from = world.sources.data() + i % 64 * 65536;
      if (i >= 64) CHECK(world.lane->flush(world.diagnostics));
      fill(from, bytes, i);
      CHECK(world.lane->put(world.at(262'000 - 8 * (i % 5)), from, bytes, world.diagnostics));
      CHECK(world.lane->signal(world.at(i % 2 * 8), i + 1, world.diagnostics));
      CHECK(world.word(0) <= i + 1);
    }
    for (uint64_t i = 0; i < last; ++i) {
      CHECK(world.lane->signal(world.at(16), i + 1, world.diagnostics));
    }
    CHECK(world.lane->flush(world.diagnostics));
    CHECK(world.word(0) == last - 1);
    CHECK(world.word(8) == last);
    CHECK(world.word(16) == last);
    const uint8_t* const from = world.sources.data() + (last - 1) % 64 * 65536;
    CHECK(std::equal(from, from + 30'000, world.data() + 262'000 - 8 * ((last - 1) % 5)));
    CHECK(world.text() == "");
  }
}

TEST_CASE("a note is taken before what the device does afterwards") {
  reset_fake();
  for (const SignalMode mode : kModes) {
    VerbsOptions options = base_options();
    options.mode = mode;
    options.queues = 3;
    World world(options);
    world.open();
    net::testing::check_notes(world, *world.lane, world.sources.data());
    world.lane.reset();
    world.end.reset();
  }
}

TEST_CASE("an end of a lane over verbs that finds no memory ends it, and both ends say so") {
  World world(base_options());
  world.open();
  net::testing::check_lack_of_memory(world, *world.lane);
  world.lane.reset();
  world.end.reset();
}

TEST_CASE("short orders of a corked lane are given to the device at once") {
  fake::FakeVerbs* const fake = reset_fake();
  for (const SignalMode mode : kModes) {
    VerbsOptions options = base_options();
    options.mode = mode;
    World world(options);
    world.open();
    const int64_t before = fake == nullptr ? 0 : fake->posts.load();
    world.lane->cork();
    CHECK(world.lane->put(world.at(64), world.sources.data(), 1000, world.diagnostics));
    CHECK(world.lane->room() > 0);
    CHECK(world.lane->signal(world.at(0), 1, world.diagnostics));
    if (fake != nullptr) CHECK(fake->posts == before);
    CHECK(world.lane->uncork(world.diagnostics));
    if (fake != nullptr) CHECK(fake->posts == before + 1);
    world.await_count(0, 1);
    // More than its staging buffer holds, from memory that the device cannot read.
    std::vector<uint8_t> other(kWorldBytes);
    fill(other.data(), other.size(), 1);
    world.lane->cork();
    CHECK(world.lane->put(world.at(64), other.data(), kWorldBytes - 64, world.diagnostics));
    for (int i = 0; i < 100; ++i) {
      CHECK(world.lane->put(world.at(64 + 8 * i), other.data() + 8 * i, 8, world.diagnostics));
    }
    CHECK(world.lane->uncork(world.diagnostics));
    CHECK(world.lane->flush(world.diagnostics));
    CHECK(std::equal(other.begin(), other.end() - 64, world.data() + 64));
    CHECK(world.text() == "");
  }
}

TEST_CASE("places outside a region, or of no region of lanes, are refused at once") {
  reset_fake();
  World world;
  world.open();
  net::testing::check_refused_places(world, *world.lane);
}

TEST_CASE("memory that was not registered is out of reach, and both ends say so") {
  reset_fake();
  for (const bool signal : {false, true}) {
    VerbsOptions options = base_options();
    options.mode = SignalMode::host;
    World world(options);
    world.open();
    const Window forged(world.id, 2 * kWorldBytes, world.key());
    const std::vector<uint8_t> bytes(65536);
    const bool given =
        signal ? world.lane->signal({&forged, kWorldBytes}, 1, world.diagnostics)
               : world.lane->put({&forged, kWorldBytes}, bytes.data(), 65536, world.diagnostics);
    if (given) CHECK(!world.lane->flush(world.diagnostics));
    const std::string said =
        std::string("the lane to rank 3 has ended: ") +
        (signal ? "atomic add of a signal" : "RDMA write of 65536 bytes") +
        ": remote access error: the peer has not shared that memory, or has freed it; a buffer "
        "must stay until all ranks have ended the calls that use it (status 10, vendor's ";
    CHECK_THAT(world.text(), Catch::StartsWith("error: " + said));
    CHECK_THAT(world.far_reports.wait(), Catch::StartsWith("rank 5 ends its lane: " + said));
    CHECK_THAT(world.near_reports.wait(), Catch::StartsWith(said));
    CHECK(!world.lane->put(world.at(0), bytes.data(), 8, world.diagnostics));
    CHECK(!world.lane->signal(world.at(0), 1, world.diagnostics));
    CHECK(!world.lane->complete(nullptr, 1, world.diagnostics));
  }
}

TEST_CASE("a message for memory that was not exposed ends the lane, and both ends say so") {
  reset_fake();
  VerbsOptions options = base_options();
  options.mode = SignalMode::host_no_atomic;
  World world(options);
  world.open();
  const Window forged(world.id, 2 * kWorldBytes, world.key());
  const bool given = world.lane->signal({&forged, kWorldBytes}, 1, world.diagnostics);
  CHECK(!(given && world.lane->flush(world.diagnostics)));
  const std::string said =
      "the lane of rank 5 brings 8 bytes at byte 8388608 of memory 1, which it may not write\n";
  CHECK(world.text() == "error: rank 3 ends its lane: " + said);
  CHECK(world.far_reports.wait() == said);
}

TEST_CASE("a far end that goes in good order needs no more, however much is put") {
  reset_fake();
  for (const SignalMode mode : kModes) {
    VerbsOptions options = base_options();
    options.mode = mode;
    World world(options);
    world.open();
    world.end.reset();
    net::testing::check_needs_no_more(world, *world.lane, world.sources.data());
  }
}

TEST_CASE("a lane that is given up with work in it is noticed by the far end") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;  // a real device may have done the work by then
  fake->hanging_order = 1;
  World world;
  world.open();
  world.near.reset();
  CHECK(world.lane->put(world.at(0), world.sources.data(), kWorldBytes, world.diagnostics));
  CHECK(world.lane->put(world.at(0), world.sources.data(), kWorldBytes, world.diagnostics));
  world.lane.reset();
  CHECK(world.far_reports.wait() ==
        "the lane of rank 5 has ended: its process has ended, or has closed the connection\n");
}

TEST_CASE("queue pairs have the service level, traffic class and partition that were asked for") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  VerbsOptions options = base_options();
  options.service_level = 5;
  options.traffic_class = 106;
  options.partition = 2;
  World world(options);
  world.open();
  REQUIRE(world.lane != nullptr);
  CHECK(fake->service_level == 5);
  CHECK(fake->traffic_class == 106);
  CHECK(fake->partition == 2);
}

TEST_CASE("strangers get no lane") {
  reset_fake();
  World world;
  const auto offer = decode_verbs_offer(world.end->offer());
  REQUIRE(offer);
  auto wrong = *offer;
  wrong.socket.key[0] ^= 1;
  CHECK(world.open_with(encode(wrong)) == nullptr);
  CHECK(world.open_with(net::encode(offer->socket)) == nullptr);
  CHECK_THAT(world.text(),
             Catch::Contains("no lane to rank 3: at 127.0.0.1") &&
                 Catch::Contains("error: no lane to rank 3: its offer is not a lane over verbs: "
                                 "MSCCLC_LANE differs between ranks\n"));
  // A peer that knows the key, but sends what is not a message.
  const auto sockets = net::dial(offer->socket, {.connections = 1});
  REQUIRE(sockets);
  const uint8_t noise[] = {0x77, 0xff, 0xff, 1, 2, 3};
  CHECK(::send(sockets->front().get(), noise, sizeof noise, MSG_NOSIGNAL) == sizeof noise);
  CHECK(world.far_reports.wait() ==
        "the lane of rank 5 has ended: its connection broke: Bad message (74)\n");
}

TEST_CASE("lanes leave nothing, however they end") {
  const fake::FakeVerbs* const fake = reset_fake();
  const size_t before = open_descriptors();
  for (int way = 0; way < 4; ++way) {
    World world;
    if (way < 3) world.open();
    if (way == 3) continue;  // never opened
    CHECK(world.lane->put(world.at(0), world.sources.data(), kWorldBytes, world.diagnostics));
    if (way == 0) world.lane.reset();
    if (way == 1) world.end.reset();
  }
  CHECK(open_descriptors() == before);
  if (fake != nullptr) CHECK(fake->objects == 0);
}

TEST_CASE("InfiniBand") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  fake->infiniband = true;
  World world;
  world.open();
  check_counts(world);
  CHECK(world.text() == "");
}

}  // namespace
}  // namespace mscclc::verbs
