// Every call of the driver fails once, in a scenario that uses all of the device: what comes is an
// error, or another way that works; nothing forbidden is done and nothing is left over. And many
// rounds without faults.
#include "ir/support/sanitized.h"
#include "runtime/devices/cuda/copy_lane.h"
#include "tests/fakes/cuda/test_world.h"
#include "tests/helpers/runtime/descriptors.h"

namespace mscclc::cuda {
namespace {

/// A peer maps the memory, copies to it and launches. True if all went well.
bool importer_life(World& world, int process, const MemoryHandle& handle, Diagnostics& d) {
  const Inside inside(process);
  const auto device = world.open(process, 1, d);
  if (device == nullptr) return false;
  const auto mapped = device->import_memory(handle, d);
  const auto input = device->allocate(64, "input", d);
  const auto lane = device->open_lane({}, d);  // ends first, and waits for what it has begun
  const StreamHandle stream = device->create_stream(d);
  std::unique_ptr<StreamMark> mark;
  bool good = mapped != nullptr && lane != nullptr && stream != nullptr && input != nullptr &&
              lane->put({mapped.get(), 0}, input->data(), 64, d) &&
              lane->signal({mapped.get(), 0}, 7, d) && lane->flush(d) &&
              device->launch({}, stream, d) && device->mark(stream, mark, d) &&
              device->synchronize(stream, d) && device->fits(launch_of(8, 128), d);
  device->destroy_stream(stream);
  const bool bound = good && device->bind_thread(d);
  uint64_t seen = 0;
  good = bound && device->read(&seen, mapped->data(), 8, d);
  if (good) CHECK(seen == 7);
  abi::Context ignored = nullptr;
  if (bound) world.fake.driver().CtxPopCurrent(&ignored);
  return good;
}

/// True if all went well; every resource is given back in any case.
bool whole_life(World& world, int importer, Diagnostics& d) {
  const auto device = world.open(0, 0, d);
  if (device == nullptr) return false;
  const auto memory = device->allocate(1000, "scratch", d);
  const auto visible = device->allocate_visible(100, "faults", d);
  if (memory == nullptr || visible == nullptr) return false;
  const auto handle = device->export_memory(memory->data() + 8, 500, d);
  return handle.has_value() && importer_life(world, importer, *handle, d);
}

TEST_CASE("cuda: every call of the driver fails once") {
  const FakeOptions machines[] = {
      {},
      {.fabric = true},
      {.fd = false, .fabric = true},
      {.mappings = false},
      {.writes = false, .deferred = true},
  };
  const abi::Result results[] = {abi::kUnknown, abi::kOutOfMemory, abi::kNotSupported};
  const size_t before = testing::open_descriptors();
  int faults = 0, recovered = 0;
  for (const FakeOptions& machine : machines) {
    for (const int importer : {0, 1}) {
      uint64_t calls = 0;
      {
        World world(machine);
        Diagnostics d;
        CHECK(whole_life(world, importer, d));
        CHECK(text_of(d) == "");
        calls = world.fake.calls();
        world.check_clean();
      }
      for (uint64_t n = 1; n <= calls; ++n) {
        for (const abi::Result result : results) {
          if (mscclc::testing::kSanitized && result != results[n % std::size(results)]) continue;
          World world(machine);
          world.fake.fail_call(n, result);
          Diagnostics d;
          const bool good = whole_life(world, importer, d);
          INFO("call " << n << " of " << calls << " fails with " << result << "\n" << text_of(d));
          CHECK(good != d.has_errors());
          world.check_clean();
          ++faults;
          recovered += good;
        }
      }
    }
  }
  CHECK(faults > mscclc::testing::if_sanitized(300, 1000));
  CHECK(recovered > 0);
  CHECK(recovered < faults);
  CHECK(testing::open_descriptors() == before);
}

TEST_CASE("cuda: many lives leave nothing") {
  const size_t before = testing::open_descriptors();
  World world({.fabric = true, .granule = 4096});
  for (int i = 0; i < mscclc::testing::if_sanitized(500, 10000); ++i) {
    Diagnostics d;
    if (!whole_life(world, i % 2, d)) FAIL(text_of(d));
  }
  world.check_clean();
  CHECK(world.fake.allocated(0) == 0);
  CHECK(world.fake.allocated(1) == 0);
  CHECK(testing::open_descriptors() == before);
}

}  // namespace
}  // namespace mscclc::cuda
