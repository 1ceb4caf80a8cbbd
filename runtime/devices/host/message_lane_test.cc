// A lane of messages between two ends of one process: what arrives, and which end reports what goes
// wrong.
#include "runtime/devices/host/message_lane.h"

#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "executor/shared_atomics.h"
#include "runtime/network/far_memory.h"

namespace mscclc {
namespace {

constexpr uint64_t kBytes = 1 << 20;
constexpr uint32_t kFar = 3, kNear = 5;  // ranks

/// Memory of rank 3, and the lane of rank 5 to it.
struct World {
  World() {
    server = FdServer::start(diagnostics);
    REQUIRE(server != nullptr);
    mapping = SharedMapping::create(kBytes, "memory", diagnostics);
    id = memory->add(mapping, mapping->data(), kBytes);
    window = FarWindow::reserve(kBytes, FarPiece{id}, diagnostics);
    end = await_messages(
        kNear, server, memory,
        [this](const std::string& why) {
          failure = why;
          failed = true;
        },
        diagnostics);
    REQUIRE(end != nullptr);
    lane = open_messages({kFar, end->offer(), [this] { return over.load(); }}, {}, diagnostics);
    INFO(text());
    REQUIRE(lane != nullptr);
  }
  RemotePlace at(uint64_t offset) const { return {window.get(), offset}; }
  uint64_t word(uint64_t offset) const { return load_acquire<uint64_t>(mapping->data() + offset); }
  /// Read as other ranks' blocks do: the thread sanitizer does not see that a message orders this
  /// before the lane's next store.
  std::vector<uint8_t> bytes(uint64_t offset, uint64_t count) const {
    std::vector<uint8_t> seen;
    for (uint64_t i = 0; i < count; ++i) {
      seen.push_back(load_acquire<uint8_t>(mapping->data() + offset + i));
    }
    return seen;
  }
  std::string text() const { return render_text(diagnostics, Sources(), 100); }

  Diagnostics diagnostics;
  std::shared_ptr<FdServer> server;
  std::shared_ptr<ExposedMemory> memory = std::make_shared<ExposedMemory>();
  std::shared_ptr<SharedMapping> mapping;
  ExposedId id = 0;
  std::unique_ptr<FarWindow> window;
  std::atomic<bool> over{false}, failed{false};
  std::string failure;
  std::unique_ptr<LaneEnd> end;
  std::unique_ptr<Lane> lane;
};

TEST_CASE("what is put arrives before the count after it, flush waits for both") {
  World world;
  std::vector<uint8_t> bytes(kBytes - 8);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  uint64_t own = 0;
  CHECK(world.lane->put(world.at(8), bytes.data(), bytes.size(), world.diagnostics));
  CHECK(world.lane->put(world.at(8), bytes.data(), 0, world.diagnostics));
  CHECK(world.lane->signal(world.at(0), 7, world.diagnostics));
  CHECK(world.lane->complete(&own, 9, world.diagnostics));
  CHECK(own == 9);
  while (world.word(0) != 7) {
  }
  CHECK(world.bytes(8, bytes.size()) == bytes);
  CHECK(world.lane->put(world.at(16), bytes.data(), 8, world.diagnostics));
  CHECK(world.lane->flush(world.diagnostics));
  bytes.resize(8);
  CHECK(world.bytes(16, 8) == bytes);
  CHECK(world.lane->flush(world.diagnostics));
  CHECK(world.text() == "");
  CHECK(!world.failed);
}

TEST_CASE("places outside a region, or of no region of messages, are refused at once") {
  World world;
  const HostMemory other(nullptr, world.mapping->data(), kBytes);
  const uint64_t value = 1;
  CHECK(!world.lane->put(world.at(kBytes - 7), &value, 8, world.diagnostics));
  CHECK(!world.lane->signal(world.at(kBytes + 8), 1, world.diagnostics));
  CHECK(!world.lane->put({&other, 0}, &value, 8, world.diagnostics));
  CHECK(world.text() ==
        "error: 8 bytes at byte 1048569 of a region of rank 3 are not for its lane\n"
        "error: 8 bytes at byte 1048584 of a region of rank 3 are not for its lane\n"
        "error: 8 bytes at byte 0 of a region of rank 3 are not for its lane\n");
  CHECK(world.lane->flush(world.diagnostics));
}

// Both ends learn of it.
TEST_CASE("the far end takes no orders for memory that it has not exposed") {
  for (const bool signal : {false, true}) {
    World world;
    const auto forged = FarWindow::reserve(2 * kBytes, FarPiece{world.id}, world.diagnostics);
    const uint64_t value = 1;
    const RemotePlace place{forged.get(), kBytes};
    // The far end may have refused before the call returns.
    const bool given = signal ? world.lane->signal(place, 1, world.diagnostics)
                              : world.lane->put(place, &value, 8, world.diagnostics);
    CHECK(!(given && world.lane->flush(world.diagnostics)));
    CHECK(world.text() == "error: rank 3 has ended, or takes no more of what is put to it\n");
    CHECK(world.failed);
    CHECK(world.failure ==
          "the lane of rank 5 brings 8 bytes at byte 1048576 of memory 1, which "
          "it may not write");
  }
}

TEST_CASE("a count is one aligned word") {
  World world;
  CHECK(world.lane->signal(world.at(4), 1, world.diagnostics));
  CHECK(!world.lane->flush(world.diagnostics));
  CHECK(world.failed);
}

TEST_CASE("what is put to memory that was freed is dropped") {
  World world;
  const uint64_t value = 1;
  world.mapping.reset();
  CHECK(world.lane->put(world.at(0), &value, 8, world.diagnostics));
  CHECK(world.lane->signal(world.at(0), 1, world.diagnostics));
  CHECK(world.lane->flush(world.diagnostics));
  const auto more = SharedMapping::create(8, "memory", world.diagnostics);
  CHECK(world.memory->add(more, more->data(), 8) == 2);  // no number is used again
  CHECK(world.lane->signal(world.at(0), 1, world.diagnostics));
  CHECK(world.lane->flush(world.diagnostics));
  CHECK(world.text() == "");
  CHECK(!world.failed);
}

TEST_CASE("a far end that goes in good order needs no more, however much is put") {
  World world;
  const std::vector<uint8_t> bytes(kBytes);
  world.end.reset();
  uint64_t own = 0;
  CHECK(world.lane->put(world.at(0), bytes.data(), kBytes, world.diagnostics));
  CHECK(world.lane->signal(world.at(0), 1, world.diagnostics));
  CHECK(world.lane->complete(&own, 2, world.diagnostics));
  CHECK(own == 2);
  CHECK(world.lane->flush(world.diagnostics));
  CHECK(world.text() == "");
}

// What a stopped process does: it neither reads nor ends.
TEST_CASE("an order that waits for its peer ends with the communicator") {
  World world;
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Fd far(ends[0]), near(ends[1]);
  const auto offer = world.server->offer(near.get(), {}, world.diagnostics);
  int asked = 0;
  const auto lane = open_messages({7, offer, [&] { return ++asked > 3; }}, {}, world.diagnostics);
  REQUIRE(lane != nullptr);
  const std::vector<uint8_t> bytes(kBytes);
  CHECK(!lane->put(world.at(0), bytes.data(), kBytes, world.diagnostics));
  CHECK(world.text() == "error: rank 7 takes no orders, and the communicator has failed\n");
}

TEST_CASE("a lane that leads nowhere") {
  World world;
  CHECK(open_messages({9, {}}, {}, world.diagnostics) == nullptr);
  CHECK(world.text().starts_with("error: no lane to rank 9: "));
}

}  // namespace
}  // namespace mscclc
