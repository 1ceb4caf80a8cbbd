// Every call of the driver fails once, in a scenario that uses all of the device: what comes is an
// error, or another way that works; nothing forbidden is done and nothing stays behind. And ten
// thousand rounds without faults.
#include <dirent.h>

#include "runtime/cuda/copy_lane.h"
#include "runtime/cuda/test_world.h"

namespace mscclc::cuda {
namespace {

size_t open_descriptors() {
  size_t n = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++n;
  closedir(folder);
  return n;
}

/// True if all went well; every resource is given back in any case.
bool whole_life(World& world, int importer_process, Diagnostics& d) {
  const auto exporter = world.open(0, 0, d);
  if (exporter == nullptr) return false;
  const auto memory = exporter->allocate(1000, "scratch", d);
  const auto visible = exporter->allocate_visible(100, "faults", d);
  if (memory == nullptr || visible == nullptr) return false;
  auto handle = exporter->export_memory(memory->data() + 8, 500, d);
  if (!handle) return false;

  const auto importer = world.open(importer_process, 1, d);
  bool good = importer != nullptr;
  if (good) {
    const auto mapped = importer->import_memory(*handle, d);
    const auto lane = importer->open_lane(d);
    const StreamHandle stream = importer->create_stream(d);
    const auto input = importer->allocate(64, "input", d);
    good = mapped != nullptr && lane != nullptr && stream != nullptr && input != nullptr &&
           lane->put(mapped->data(), input->data(), 64, d) &&
           lane->signal(reinterpret_cast<uint64_t*>(mapped->data()), 7, d) && lane->flush(d) &&
           importer->launch({}, stream, d) && importer->synchronize(stream, d) &&
           importer->fits(8, 128, d) && importer->bind_thread(d);
    uint64_t seen = 0;
    good = good && importer->read(&seen, mapped->data(), 8, d);
    // A failed call may leave the thread bound or not; unbind it, so that leaks() sees the rest.
    importer->destroy_stream(stream);
    if (good) {
      CHECK(seen == 7);
      abi::Context ignored = nullptr;
      world.fake.driver().CtxPopCurrent(&ignored);
    }
  }
  FakeDriver::enter(0);
  return good;
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
  const size_t before = open_descriptors();
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
  CHECK(faults > 1000);
  CHECK(recovered > 0);
  CHECK(recovered < faults);
  CHECK(open_descriptors() == before);
}

TEST_CASE("cuda: ten thousand lives leave nothing") {
  const size_t before = open_descriptors();
  World world({.fabric = true, .granule = 4096});
  for (int i = 0; i < 10000; ++i) {
    Diagnostics d;
    if (!whole_life(world, i % 2, d)) FAIL(text_of(d));
  }
  world.check_clean();
  CHECK(world.fake.allocated(0) == 0);
  CHECK(world.fake.allocated(1) == 0);
  CHECK(open_descriptors() == before);
}

}  // namespace
}  // namespace mscclc::cuda
