// Lanes over sockets between GPUs of a fake driver on different nodes: what arrives in the memory
// of a GPU and in host memory, in which order, and which end reports what goes wrong.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "executor/shared_atomics.h"
#include "runtime/network/far_memory.h"
#include "runtime/network/lane_wire.h"
#include "tests/fakes/cuda/two_nodes.h"
#include "tests/helpers/runtime/relay.h"

namespace mscclc::cuda {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kBytes = 6 << 20;
constexpr milliseconds kPatience{120'000};

/// Two nodes with a lane over sockets.
struct Nodes : TwoNodes {
  explicit Nodes(World& world, bool over_relay = false) : TwoNodes(world, kBytes, kPatience) {
    REQUIRE(text() == "");
    end = await_lane();
    REQUIRE(end != nullptr);
    std::vector<uint8_t> offer = end->offer();
    if (over_relay) {
      auto decoded = net::decode_offer(offer);
      REQUIRE(decoded);
      relay = std::make_unique<testing::Relay>(decoded->address);
      decoded->address = relay->address();
      offer = net::encode(*decoded);
    }
    lane = open_lane(offer);
    INFO(text());
    REQUIRE(lane != nullptr);
  }

  /// Puts bytes from the GPU; `from`: where in `source`.
  bool put(Memory& to, uint64_t offset, const std::vector<uint8_t>& data, uint64_t from = 0) {
    world.fake.set_bytes(address_of(source->data()) + from, data);
    return lane->put({&to, offset}, source->data() + from, data.size(), diagnostics);
  }
  bool signal(Memory& to, uint64_t offset, uint64_t value) {
    return lane->signal({&to, offset}, value, diagnostics);
  }

  std::unique_ptr<LaneEnd> end;
  std::unique_ptr<testing::Relay> relay;
  std::unique_ptr<Lane> lane;
};

TEST_CASE("far gpu: a count comes after what was put before it, wherever either lies") {
  for (const bool writes : {true, false}) {
    World world({.writes = writes});
    {
      Nodes nodes(world);
      uint64_t count = 0;
      for (const size_t bytes : {1, 8, 100, 65536, 262144, 262145, (4 << 20) + 13}) {
        for (const uint64_t offset : {64, 100, 262144 - 8}) {
          for (const bool to_host : {false, true}) {
            Memory& to = to_host ? *nodes.host : *nodes.gpu;
            const Memory& at = to_host ? *nodes.on_host : *nodes.on_gpu;
            const auto data = pattern(bytes, ++count);
            CHECK(nodes.put(to, offset, data));
            // The counts lie elsewhere every other time.
            Memory& counts = count % 3 == 0 ? *nodes.host : *nodes.gpu;
            const Memory& counted = count % 3 == 0 ? *nodes.on_host : *nodes.on_gpu;
            CHECK(nodes.signal(counts, 0, count));
            alignas(8) uint64_t own = 0;
            CHECK(nodes.lane->complete(&own, count, nodes.diagnostics));
            nodes.await(counted, 0, count);
            REQUIRE((nodes.there(at, offset, bytes) == data));
            while (load_acquire<uint64_t>(&own) != count) std::this_thread::yield();
          }
        }
      }
      CHECK(nodes.lane->flush(nodes.diagnostics));
      CHECK(nodes.text() == "");
      nodes.lane.reset();
      nodes.end.reset();
      CHECK(nodes.near_reports.text() + nodes.far_reports.text() == "");
      CHECK((world.fake.calls("StreamWriteValue64") > 0) == writes);
    }
    world.check_clean();
  }
}

// Work is done only when it is waited for: a count that overtook its data would be seen.
TEST_CASE("far gpu: counts come after copies that take their time") {
  World world({.deferred = true});
  {
    Nodes nodes(world);
    for (uint64_t i = 1; i <= 5; ++i) {
      const auto data = pattern(300'000, i);
      CHECK(nodes.put(*nodes.gpu, 4096, data));
      CHECK(nodes.signal(*nodes.host, 0, i));
      CHECK(nodes.word(*nodes.on_host, 0) <= i);
      CHECK(nodes.lane->flush(nodes.diagnostics));
      CHECK(nodes.word(*nodes.on_host, 0) == i);
      REQUIRE((nodes.there(*nodes.on_gpu, 4096, data.size()) == data));
    }
    CHECK(nodes.text() == "");
  }
  world.check_clean();
}

TEST_CASE("far gpu: puts to one place, and counts, keep their order") {
  World world;
  {
    Nodes nodes(world);
    std::vector<uint8_t> data;
    for (uint64_t i = 1; i <= 60; ++i) {
      data = pattern(i % 3 == 0 ? 600'000 : 300'000, i);
      CHECK(nodes.put(*nodes.gpu, 262'000 - 8 * (i % 5), data, i % 4 * 1'000'000));
      CHECK(nodes.signal(i % 2 == 0 ? *nodes.host : *nodes.gpu, 0, i));
    }
    CHECK(nodes.lane->flush(nodes.diagnostics));
    CHECK(nodes.word(*nodes.on_host, 0) == 60);
    CHECK(nodes.word(*nodes.on_gpu, 0) == 59);
    REQUIRE((nodes.there(*nodes.on_gpu, 262'000 - 8 * (60 % 5), data.size()) == data));
    CHECK(nodes.text() == "");
  }
  world.check_clean();
}

TEST_CASE("far gpu: what lies in host memory is sent from there") {
  World world;
  {
    Nodes nodes(world);
    auto pinned = nodes.near->allocate_visible(1 << 20, "packets", nodes.diagnostics);
    const auto data = pattern(1 << 20, 7);
    std::memcpy(pinned->data(), data.data(), data.size());
    const uint64_t copies = world.fake.calls("MemcpyAsync");
    CHECK(nodes.lane->put({nodes.host.get(), 512}, pinned->data(), data.size(), nodes.diagnostics));
    CHECK(nodes.lane->flush(nodes.diagnostics));
    CHECK(world.fake.calls("MemcpyAsync") == copies);
    REQUIRE((nodes.there(*nodes.on_host, 512, data.size()) == data));
    CHECK(nodes.text() == "");
  }
  world.check_clean();
}

TEST_CASE("far gpu: a connection that is cut is reported at both ends") {
  for (const uint64_t after : {0, 1000, 3'000'000}) {
    World world;
    {
      Nodes nodes(world, true);
      nodes.relay->cut_after(nodes.relay->passed() + after);
      const auto data = pattern(4 << 20, 1);
      while (nodes.put(*nodes.gpu, 0, data) && nodes.lane->flush(nodes.diagnostics)) {
      }
      CHECK_THAT(nodes.text(),
                 Catch::StartsWith("lane-failed: the lane to rank 3 has ended: its "));
      CHECK_THAT(nodes.far_reports.wait(), Catch::StartsWith("the lane of rank 5 has ended: its "));
    }
    world.check_clean();
  }
}

TEST_CASE("far gpu: memory that has gone is written no more") {
  World world;
  {
    Nodes nodes(world);
    nodes.on_gpu.reset();
    CHECK(nodes.put(*nodes.gpu, 0, pattern(100'000, 1)));
    CHECK(nodes.signal(*nodes.gpu, 0, 1));
    CHECK(nodes.signal(*nodes.host, 0, 2));
    CHECK(nodes.lane->flush(nodes.diagnostics));
    CHECK(nodes.word(*nodes.on_host, 0) == 2);
    CHECK(nodes.text() == "");
  }
  world.check_clean();
}

// The source is host memory, so that the near end makes no copies.
TEST_CASE("far gpu: memory is kept until what was copied to it has come") {
  ::setenv("MSCCLC_SOCKET_CONNECTIONS", "1", 1);
  World world({.deferred = true});
  {
    Nodes nodes(world);
    auto pinned = nodes.near->allocate_visible(1 << 20, "packets", nodes.diagnostics);
    const uint64_t frees = world.fake.calls("MemUnmap");
    uint8_t* const second = pinned->data() + 200'000;
    std::memset(second, 7, 100'000);
    const auto put = [&](Memory& to, const uint8_t* from) {
      return nodes.lane->put({&to, 64}, from, 100'000, nodes.diagnostics);
    };
    CHECK(put(*nodes.gpu, pinned->data()));
    CHECK(nodes.signal(*nodes.gpu, 0, 1));
    CHECK(put(*nodes.host, second));
    nodes.await(*nodes.on_host, 64, 7);  // the far end has begun all that came before
    nodes.on_gpu.reset();
    CHECK(world.fake.calls("MemUnmap") == frees);
    CHECK(nodes.lane->flush(nodes.diagnostics));
    CHECK(world.fake.calls("MemUnmap") == frees + 1);
    CHECK(nodes.text() == "");
  }
  world.check_clean();
  ::unsetenv("MSCCLC_SOCKET_CONNECTIONS");
}

// Likewise.
TEST_CASE("far gpu: a copy at the far end that goes wrong ends the lane, and both ends say so") {
  World world;
  {
    Nodes nodes(world);
    const auto small = pattern(512, 1);
    CHECK(nodes.lane->flush(nodes.diagnostics));
    world.fake.fail_function("MemcpyAsync");
    // The far end may have failed before the put returns.
    const bool given =
        nodes.lane->put({nodes.gpu.get(), 0}, small.data(), small.size(), nodes.diagnostics);
    CHECK(!(given && nodes.lane->flush(nodes.diagnostics)));
    CHECK_THAT(nodes.text(),
               Catch::StartsWith("lane-failed: rank 3 ends its lane: the lane of rank "
                                 "5 brings orders that cannot be carried out: cannot "
                                 "copy 512 bytes for another node: "));
    CHECK_THAT(nodes.far_reports.wait(),
               Catch::StartsWith("the lane of rank 5 brings orders that "));
  }
}

TEST_CASE("far gpu: a node's own memory is mapped, not written by lanes") {
  World world;
  {
    world.node = 0;
    const auto a = world.open(0, 0), b = world.open(0, 1);
    Diagnostics diagnostics;
    const auto name = b->link_name(diagnostics);
    REQUIRE(name);
    const auto link = a->link_to(*name, diagnostics);
    REQUIRE(link);
    CHECK(link->access);
    const auto memory = b->allocate(4096, "memory", diagnostics);
    const auto handle = b->export_memory(memory->data(), 4096, diagnostics);
    REQUIRE(handle);
    const auto mapped = a->reach_memory(*handle, diagnostics);
    REQUIRE(mapped);
    const auto bytes = pattern(4096, 2);
    CHECK(a->write(mapped->data(), bytes.data(), bytes.size(), diagnostics));
    CHECK(world.fake.bytes_at(address_of(memory->data()), 4096) == bytes);
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
}

}  // namespace
}  // namespace mscclc::cuda
