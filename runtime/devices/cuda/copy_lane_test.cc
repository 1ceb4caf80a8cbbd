#include "runtime/devices/cuda/copy_lane.h"

#include "tests/fakes/cuda/test_world.h"

namespace mscclc::cuda {
namespace {

/// A lane of cuda:0 to memory of cuda:1, in another process.
struct Pair {
  explicit Pair(World& world) {
    to = world.open(1, 1);
    target = to->allocate(4096, "counts", diagnostics);
    handle = to->export_memory(target->data(), 4096, diagnostics);
    from = world.open(0, 0);
    mapped = from->import_memory(*handle, diagnostics);
    source = from->allocate(4096, "input", diagnostics);
    lane = from->open_lane({}, diagnostics);
    REQUIRE(lane != nullptr);
  }
  ~Pair() {
    FakeDriver::enter(0);
    lane.reset();
    mapped.reset();
    source.reset();
    from.reset();
    FakeDriver::enter(1);
  }
  uint64_t word(World& world, uint64_t at) { return word_of(world, *mapped, at); }
  static uint64_t word_of(World& world, const Memory& memory, uint64_t at) {
    const std::vector<uint8_t> bytes = world.fake.bytes_at(address_of(memory.data()) + at, 8);
    uint64_t value = 0;
    std::memcpy(&value, bytes.data(), 8);
    return value;
  }
  Diagnostics diagnostics;
  std::unique_ptr<CudaDevice> from, to;
  std::unique_ptr<Memory> target, mapped, source;
  std::optional<MemoryHandle> handle;
  std::unique_ptr<Lane> lane;
};

TEST_CASE("kernels have their stack before the host makes copies that they wait for") {
  World world;
  { const Pair pair(world); }
  CHECK(world.stacks_kept == 1);
  world.stack_error = 2;
  Diagnostics diagnostics;
  const auto device = world.open(0, 0);
  CHECK(device->open_lane({}, diagnostics) == nullptr);
  REQUIRE(diagnostics.has_errors());
  CHECK_THAT(diagnostics.all()[0].message,
             Catch::Contains("cannot keep the stack that kernels need on cuda:0"));
}

TEST_CASE("cuda: a lane carries out its orders in order, flush waits for them") {
  for (const bool writes : {true, false}) {
    for (const bool deferred : {true, false}) {
      World world({.writes = writes, .deferred = deferred});
      {
        Pair pair(world);
        const uint64_t data = 77;
        CHECK(pair.from->write(pair.source->data(), &data, 8, pair.diagnostics));
        CHECK(pair.lane->put({pair.mapped.get(), 64}, pair.source->data(), 8, pair.diagnostics));
        CHECK(pair.lane->put({pair.mapped.get(), 0}, pair.source->data(), 0, pair.diagnostics));
        CHECK(pair.lane->signal({pair.mapped.get(), 0}, 1, pair.diagnostics));
        CHECK(pair.lane->signal({pair.mapped.get(), 0}, 2, pair.diagnostics));
        auto* own = reinterpret_cast<uint64_t*>(pair.source->data() + 512);
        CHECK(pair.lane->complete(own, 9, pair.diagnostics));
        if (deferred) {
          CHECK(pair.word(world, 0) == 0);
          CHECK(Pair::word_of(world, *pair.source, 512) == 0);
        }
        CHECK(pair.lane->flush(pair.diagnostics));
        CHECK(pair.word(world, 0) == 2);
        CHECK(Pair::word_of(world, *pair.source, 512) == 9);
        CHECK(pair.word(world, 64) == 77);
        CHECK((world.fake.calls("StreamWriteValue64") > 0) == writes);
        CHECK(text_of(pair.diagnostics) == "");
      }
      world.check_clean();
    }
  }
}

TEST_CASE("cuda: a driver that does not write to a peer's mapping gets the signal copied") {
  World world({.writes = true});
  {
    Pair pair(world);
    world.fake.options().writes = false;  // the attribute said otherwise
    CHECK(pair.lane->signal({pair.mapped.get(), 0}, 5, pair.diagnostics));
    CHECK(pair.lane->signal({pair.mapped.get(), 0}, 6, pair.diagnostics));
    CHECK(pair.lane->flush(pair.diagnostics));
    CHECK(pair.word(world, 0) == 6);
    CHECK(world.fake.calls("StreamWriteValue64") == 1);
    CHECK(text_of(pair.diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("cuda: copied signals of any number keep their values until they have gone") {
  World world({.writes = false, .deferred = true});
  {
    Pair pair(world);
    // 400 words in turn, three times: more than a lane has slots.
    for (uint64_t i = 0; i < 1200; ++i) {
      CHECK(pair.lane->signal({pair.mapped.get(), i % 400 * 8}, i + 1, pair.diagnostics));
    }
    CHECK(pair.lane->flush(pair.diagnostics));
    for (uint64_t i = 0; i < 400; ++i) CHECK(pair.word(world, i * 8) == 801 + i);
    CHECK(text_of(pair.diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("cuda: a copy that goes wrong is reported by the flush") {
  World world({.deferred = true});
  {
    Pair pair(world);
    CHECK(pair.lane->put({pair.mapped.get(), 0}, pair.source->data(), 1 << 20, pair.diagnostics));
    CHECK(!pair.lane->flush(pair.diagnostics));
    CHECK(has_code(pair.diagnostics, "cuda"));
  }
  CHECK(world.fake.leaks() == std::vector<std::string>{});
}

}  // namespace
}  // namespace mscclc::cuda
