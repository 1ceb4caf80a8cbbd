#include "runtime/devices/cuda/memory/exchange.h"

#include <dirent.h>

#include "runtime/devices/cuda/driver/stream.h"
#include "tests/fakes/cuda/test_world.h"
#include "tests/helpers/runtime/processes.h"

namespace mscclc::cuda {
namespace {

size_t open_descriptors() {
  size_t n = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++n;
  closedir(folder);
  return n;
}

std::vector<HandleKind> kinds(const MemoryHandle& handle) {
  std::vector<HandleKind> kinds;
  for (const Offer& offer : handle.offers) kinds.push_back(offer.kind);
  return kinds;
}

using Kinds = std::vector<HandleKind>;

/// What travels: everything but `keep`.
MemoryHandle sent(const MemoryHandle& handle) {
  MemoryHandle copy = handle;
  copy.keep = nullptr;
  return copy;
}

/// Exports from cuda:0 of process 0, imports on cuda:1 of `to`, and sees the exporter's data there
/// and the importer's here.
void check_round(World& world, const void* data, uint64_t bytes, CudaDevice& exporter, int to,
                 const Kinds& expected) {
  Diagnostics diagnostics;
  world.fake.enter(0);
  std::vector<uint8_t> pattern(bytes);
  for (uint64_t i = 0; i < bytes; ++i) pattern[i] = static_cast<uint8_t>(i * 7 + 1);
  CHECK(exporter.write(const_cast<void*>(data), pattern.data(), bytes, diagnostics));
  auto handle = exporter.export_memory(data, bytes, diagnostics);
  REQUIRE(handle.has_value());
  CHECK(kinds(*handle) == expected);
  {
    const auto importer = world.open(to, 1);
    const auto mapped = importer->import_memory(sent(*handle), diagnostics);
    INFO(text_of(diagnostics));
    REQUIRE(mapped != nullptr);
    CHECK(mapped->bytes() == bytes);
    std::vector<uint8_t> seen(bytes);
    CHECK(importer->read(seen.data(), mapped->data(), bytes, diagnostics));
    CHECK(seen == pattern);
    const uint8_t mark = 99;
    CHECK(importer->write(mapped->data() + bytes - 1, &mark, 1, diagnostics));
  }
  world.fake.enter(0);
  handle.reset();
  std::vector<uint8_t> seen(bytes);
  CHECK(exporter.read(seen.data(), data, bytes, diagnostics));
  CHECK(seen.back() == 99);
  CHECK(text_of(diagnostics) == "");
}

struct Case {
  FakeOptions options;
  int to;  ///< the importer's process
  Kinds offers;
};

TEST_CASE("cuda: what the device allocates is shared in all ways that the system has") {
  const Case cases[] = {
      {{.fabric = false}, 0, {HandleKind::same_process, HandleKind::cuda_fd}},
      {{.fabric = false}, 1, {HandleKind::same_process, HandleKind::cuda_fd}},
      {{.fabric = true},
       1,
       {HandleKind::same_process, HandleKind::cuda_fd, HandleKind::cuda_fabric}},
      {{.fabric = true, .imex = false}, 1, {HandleKind::same_process, HandleKind::cuda_fd}},
      {{.fd = false, .fabric = true}, 1, {HandleKind::same_process, HandleKind::cuda_fabric}},
      {{.mappings = false}, 0, {HandleKind::same_process, HandleKind::cuda_ipc}},
      {{.mappings = false}, 1, {HandleKind::same_process, HandleKind::cuda_ipc}},
  };
  const size_t before = open_descriptors();
  for (const Case& c : cases) {
    World world(c.options);
    {
      const auto device = world.open(0, 0);
      Diagnostics diagnostics;
      const auto memory = device->allocate(5000, "scratch", diagnostics);
      REQUIRE(memory != nullptr);
      check_round(world, memory->data(), 5000, *device, c.to, c.offers);
      check_round(world, memory->data() + 4096, 904, *device, c.to, c.offers);
    }
    world.check_clean();
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("cuda: what the system refuses once is not asked for again") {
  World world({.fabric = true, .imex = false});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto a = device->allocate(10, "a", diagnostics);
    const uint64_t before = world.fake.calls("MemCreate");
    CHECK(before == 2);
    const auto b = device->allocate(10, "b", diagnostics);
    CHECK(world.fake.calls("MemCreate") == 3);
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("cuda: the importer goes on to the next kind") {
  World world({.fabric = true});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto memory = device->allocate(100, "scratch", diagnostics);
    auto handle = device->export_memory(memory->data(), 100, diagnostics);
    REQUIRE(handle.has_value());
    MemoryHandle damaged = sent(*handle);
    damaged.offers[1].bytes[0] ^= 0xff;  // no such ticket
    const Inside other(1);
    const auto importer = world.open(1, 1);
    auto mapped = importer->import_memory(damaged, diagnostics);
    CHECK(mapped != nullptr);
    CHECK(text_of(diagnostics) == "");
    mapped.reset();

    world.fake.options().imex = false;
    CHECK(importer->import_memory(damaged, diagnostics) == nullptr);
    CHECK(text_of(diagnostics) ==
          "cannot-map: cannot map 100 bytes of a peer's memory for cuda:1 (Fake GPU)\n"
          "  same_process: the exporter is another process\n"
          "  cuda_fd: the ticket is not known\n"
          "  cuda_fabric: cannot import a fabric handle: operation not permitted "
          "(CUDA_ERROR_NOT_PERMITTED)\n");
  }
  world.fake.enter(0);
  world.check_clean();
}

TEST_CASE("cuda: a descriptor's mapping outlives the exporter") {
  World world;
  {
    auto device = world.open(0, 0);
    Diagnostics diagnostics;
    auto memory = device->allocate(8, "scratch", diagnostics);
    auto handle = device->export_memory(memory->data(), 8, diagnostics);
    const Inside other(1);
    const auto importer = world.open(1, 1);
    const auto mapped = importer->import_memory(sent(*handle), diagnostics);
    REQUIRE(mapped != nullptr);
    world.fake.enter(0);
    handle.reset();
    memory.reset();
    device.reset();
    world.fake.enter(1);
    uint64_t seen = 1;
    CHECK(importer->read(&seen, mapped->data(), 8, diagnostics));
    CHECK(seen == 0);
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("cuda: the exporter keeps what a fabric handle names while `keep` lives") {
  World world({.fd = false, .fabric = true});
  {
    auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const uint64_t own = world.fake.allocated(0);
    auto memory = device->allocate(8, "scratch", diagnostics);
    auto handle = device->export_memory(memory->data(), 8, diagnostics);
    const MemoryHandle travels = sent(*handle);
    memory.reset();
    {
      const Inside other(1);
      const auto importer = world.open(1, 1);
      CHECK(importer->import_memory(travels, diagnostics) != nullptr);
    }
    handle.reset();
    CHECK(world.fake.allocated(0) == own);
  }
  world.check_clean();
}

TEST_CASE("cuda: in one process a mapping outlives the exporter's") {
  World world;
  {
    const auto a = world.open(0, 0), b = world.open(0, 1);
    Diagnostics diagnostics;
    auto memory = a->allocate(8, "scratch", diagnostics);
    auto handle = a->export_memory(memory->data(), 8, diagnostics);
    const auto mapped = b->import_memory(*handle, diagnostics);
    REQUIRE(mapped != nullptr);
    CHECK(mapped->data() != memory->data());
    handle.reset();
    memory.reset();
    uint64_t seen = 1;
    CHECK(b->read(&seen, mapped->data(), 8, diagnostics));
    CHECK(seen == 0);
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("cuda: in one process a mapping holds the context of the memory's GPU") {
  World world;
  {
    auto a = world.open(0, 0);
    const auto b = world.open(0, 1);
    Diagnostics diagnostics;
    auto memory = a->allocate(8, "scratch", diagnostics);
    auto handle = a->export_memory(memory->data(), 8, diagnostics);
    auto mapped = b->import_memory(*handle, diagnostics);
    REQUIRE(mapped != nullptr);
    handle.reset();
    memory.reset();
    a.reset();
    CHECK(world.fake.leaks().front() == "process 0: the context of cuda:0 is retained 1 times");
    mapped.reset();
    CHECK(world.fake.leaks().front() == "process 0: the context of cuda:1 is retained 1 times");
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("cuda: in one process and on one GPU there is one address") {
  World world;
  {
    const auto a = world.open(0, 0), b = world.open(0, 0);
    Diagnostics diagnostics;
    auto memory = a->allocate(100, "scratch", diagnostics);
    const auto handle = a->export_memory(memory->data() + 8, 92, diagnostics);
    auto mapped = b->import_memory(*handle, diagnostics);
    REQUIRE(mapped != nullptr);
    CHECK(mapped->data() == memory->data() + 8);
    CHECK(text_of(diagnostics) == "");
    // A peer's last signals may still be on their way when the plan ends here.
    const auto at = address_of(memory->data());
    unsigned type = 0;
    const auto is_memory = [&] {
      const CurrentContext current(*a->context());
      return world.fake.driver().PointerGetAttribute(&type, abi::kMemoryType, at) == abi::kSuccess;
    };
    memory.reset();
    CHECK(is_memory());
    mapped.reset();
    CHECK(!is_memory());
  }
  world.check_clean();
}

/// Memory as the program around us allocates it.
struct Foreign {
  Foreign(World& world, CudaDevice& device, uint64_t bytes) : world_(world), device_(device) {
    const CurrentContext current(*device.context());
    world.fake.driver().MemAlloc(&address, bytes);
  }
  ~Foreign() {
    FakeDriver::enter(0);
    const CurrentContext current(*device_.context());
    world_.fake.driver().MemFree(address);
  }
  World& world_;
  CudaDevice& device_;
  abi::Address address = 0;
};

TEST_CASE("cuda: cudaMalloc's memory is shared by legacy handles, from its base on") {
  for (const int to : {0, 1}) {
    World world;
    {
      const auto device = world.open(0, 0);
      const Foreign foreign(world, *device, 10000);
      const Kinds offers = {HandleKind::same_process, HandleKind::cuda_ipc};
      check_round(world, pointer_to(foreign.address), 10000, *device, to, offers);
      check_round(world, pointer_to(foreign.address + 1234), 4321, *device, to, offers);
    }
    world.check_clean();
  }
}

TEST_CASE("cuda: a child of fork() that ends with its parent's memory frees nothing") {
  World world({.mappings = false});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    auto memory = device->allocate(100, "scratch", diagnostics);
    REQUIRE(memory != nullptr);
    const uint64_t before = world.fake.calls("MemFree");
    testing::Processes processes;
    processes.start([&] {
      memory.reset();
      return world.fake.calls("MemFree") == before ? 0 : 1;
    });
    CHECK(processes.wait(0, std::chrono::minutes(5)) == 0);
  }
  world.check_clean();
}

TEST_CASE("cuda: one legacy handle may be opened several times") {
  World world;
  {
    const auto device = world.open(0, 0);
    const Foreign foreign(world, *device, 10000);
    Diagnostics diagnostics;
    const auto handle = device->export_memory(pointer_to(foreign.address), 100, diagnostics);
    const Inside other(1);
    const auto importer = world.open(1, 1);
    auto a = importer->import_memory(*handle, diagnostics);
    auto b = importer->import_memory(*handle, diagnostics);
    CHECK(a->data() == b->data());
    a.reset();
    uint64_t seen = 0;
    CHECK(importer->read(&seen, b->data(), 8, diagnostics));
    b.reset();
  }
  world.fake.enter(0);
  world.check_clean();
}

TEST_CASE("cuda: a pool's memory is shared inside the process, with a warning") {
  World world;
  {
    const auto device = world.open(0, 0);
    const abi::Address address = world.fake.allocate_pooled(0, 4096);
    Diagnostics diagnostics;
    const auto handle = device->export_memory(pointer_to(address), 4096, diagnostics);
    REQUIRE(handle.has_value());
    CHECK(kinds(*handle) == Kinds{HandleKind::same_process});
    CHECK(text_of(diagnostics) ==
          fmt::format("shared-in-process-only: 4096 bytes at {:#x} can be mapped inside this "
                      "process only\n"
                      "  it comes from a memory pool (cudaMallocAsync), whose pieces cannot be "
                      "exported one by one\n",
                      address));
    CHECK(!diagnostics.has_errors());
    Diagnostics other;
    {
      const auto neighbour = world.open(0, 1);
      const auto mapped = neighbour->import_memory(*handle, other);
      REQUIRE(mapped != nullptr);
      uint64_t seen = 0;
      CHECK(neighbour->read(&seen, mapped->data(), 8, other));
      CHECK(text_of(other) == "");
    }
    {
      const Inside another(1);
      const auto stranger = world.open(1, 1);
      CHECK(stranger->import_memory(*handle, other) == nullptr);
      CHECK(has_code(other, "cannot-map"));
    }
    const CurrentContext current(*device->context());
    world.fake.driver().MemFree(address);
  }
  world.check_clean();
}

TEST_CASE("cuda: VMM memory without a handle type is shared inside the process") {
  World world({.fd = false});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto memory = device->allocate(100, "scratch", diagnostics);
    const auto handle = device->export_memory(memory->data(), 100, diagnostics);
    REQUIRE(handle.has_value());
    CHECK(kinds(*handle) == Kinds{HandleKind::same_process});
    CHECK(has_code(diagnostics, "shared-in-process-only"));
    CHECK(text_of(diagnostics).find("requestedHandleTypes") != std::string::npos);
  }
  world.check_clean();
}

TEST_CASE("cuda: pinned host memory is shared inside the process, at its address") {
  World world;
  {
    const auto a = world.open(0, 0), b = world.open(0, 1);
    Diagnostics diagnostics;
    const auto memory = a->allocate_visible(100, "x", diagnostics);
    const auto handle = a->export_memory(memory->data() + 10, 20, diagnostics);
    REQUIRE(handle.has_value());
    const auto mapped = b->import_memory(*handle, diagnostics);
    REQUIRE(mapped != nullptr);
    CHECK(mapped->data() == memory->data() + 10);
  }
  world.check_clean();
}

TEST_CASE("cuda: sizes that memory cannot have are refused with the address") {
  World world({.granule = 65536});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto pinned = device->allocate_visible(100, "x", diagnostics);
    const auto on_gpu = device->allocate(100, "scratch", diagnostics);
    for (const uint8_t* at : {pinned->data(), on_gpu->data()}) {
      CHECK(device->hold_memory(at, 100, diagnostics) != nullptr);
      const uint64_t wraps = uint64_t{0} - address_of(at);
      for (const uint64_t bytes : {~uint64_t{0}, wraps, wraps + 1, wraps + 100}) {
        Diagnostics refused;
        CHECK(device->hold_memory(at, bytes, refused) == nullptr);
        CHECK(text_of(refused) ==
              fmt::format("bad-call: there is no memory of {} bytes at {:#x}: it would end after "
                          "the last address\n"
                          "  pass the buffer's size in bytes; a negative number becomes one as "
                          "large\n",
                          bytes, address_of(at)));
      }
    }
    CHECK(text_of(diagnostics) == "");
    CHECK(device->export_memory(pinned->data(), 100, diagnostics).has_value());
    for (const uint64_t bytes : {uint64_t{1} << 40, ~uint64_t{0}}) {
      Diagnostics refused;
      CHECK(!device->export_memory(pinned->data(), bytes, refused).has_value());
      CHECK(text_of(refused) ==
            fmt::format("cannot-share: cannot share {} bytes at {:#x} with other ranks: it is "
                        "pinned memory of the host, and CUDA does not know its last byte\n"
                        "  pass the size that cudaHostAlloc or cudaHostRegister was given\n",
                        bytes, address_of(pinned->data())));
    }
  }
  world.check_clean();
}

TEST_CASE("cuda: memory that cannot be shared") {
  World world({.granule = 65536});
  {
    const auto device = world.open(0, 0), other = world.open(0, 1);
    Diagnostics diagnostics;
    const auto refused = [&](CudaDevice& on, const void* at, uint64_t bytes) {
      Diagnostics d;
      CHECK(!on.export_memory(at, bytes, d).has_value());
      CHECK(has_code(d, "cannot-share"));
      return text_of(d);
    };
    int local = 0;
    CHECK(refused(*device, &local, 4).find("CUDA does not know this address") != std::string::npos);
    const abi::Address managed = world.fake.allocate_managed(0, 64);
    CHECK(refused(*device, pointer_to(managed), 64).find("it is managed memory") !=
          std::string::npos);
    const auto memory = device->allocate(100, "scratch", diagnostics);
    CHECK(refused(*other, memory->data(), 100)
              .find("it lies on cuda:0, but this rank runs on cuda:1") != std::string::npos);
    CHECK(refused(*device, memory->data() + 100, 65536)
              .find("the allocation there ends 65436 bytes on") != std::string::npos);
    CHECK(refused(*device, memory->data(), ~uint64_t{0}).find("ends 65536 bytes on") !=
          std::string::npos);
    const CurrentContext current(*device->context());
    world.fake.driver().MemFree(managed);
  }
  world.check_clean();
}

TEST_CASE("cuda: handles that lie") {
  World world({.fabric = true});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto memory = device->allocate(100, "scratch", diagnostics);
    const auto handle = device->export_memory(memory->data(), 100, diagnostics);
    const Inside other(1);
    const auto importer = world.open(1, 1);
    const auto refused = [&](auto change) {
      MemoryHandle liar = sent(*handle);
      change(liar);
      Diagnostics d;
      CHECK(importer->import_memory(liar, d) == nullptr);
      CHECK(d.has_errors());
      return text_of(d);
    };
    CHECK(refused([](MemoryHandle& h) { h.bytes = h.allocation + 1; }) ==
          "bad-handle: a piece of memory lies outside its allocation\n");
    CHECK(refused([](MemoryHandle& h) { h.offset = ~uint64_t{0}; }) ==
          "bad-handle: a piece of memory lies outside its allocation\n");
    refused([](MemoryHandle& h) { h.offers.clear(); });
    refused([](MemoryHandle& h) { h.allocation *= 2; });  // more than there is
    refused([](MemoryHandle& h) { h.allocation = 1ull << 60; });
    refused([](MemoryHandle& h) {
      for (Offer& offer : h.offers) offer.bytes.pop_back();
    });
    refused([](MemoryHandle& h) {
      for (Offer& offer : h.offers) offer.bytes.clear();
    });
    refused([](MemoryHandle& h) { h.offers = {{HandleKind::host_fd, {1, 2, 3}}}; });
  }
  world.fake.enter(0);
  world.check_clean();
}

TEST_CASE("cuda: memory without virtual management stays until the last peer has let go of it") {
  for (const int importer : {0, 1}) {
    const size_t before = open_descriptors();
    World world({.mappings = false});
    {
      const auto a = world.open(0, 0);
      Diagnostics diagnostics;
      auto memory = a->allocate(100, "scratch", diagnostics);
      auto handle = a->export_memory(memory->data(), 100, diagnostics);
      REQUIRE(handle.has_value());
      const uint64_t own = world.fake.allocated(0);
      {
        const auto b = world.open(importer, 1);
        const auto mapped = b->import_memory(*handle, diagnostics);
        const auto other = b->allocate(8, "own", diagnostics);
        REQUIRE(mapped != nullptr);
        FakeDriver::enter(0);
        handle.reset();
        memory.reset();
        CHECK(world.fake.allocated(0) == own);
        FakeDriver::enter(importer);
        const auto lane = b->open_lane({}, diagnostics);
        CHECK(
            lane->put({mapped.get(), 0}, other->data(), 8, diagnostics));  // a call of b's goes on
        CHECK(lane->flush(diagnostics));
      }
      FakeDriver::enter(0);
      if (importer != 0) a->allocate(1, "more", diagnostics);  // notices the other process
      CHECK(world.fake.allocated(0) == own - 100);
      CHECK(text_of(diagnostics) == "");
    }
    world.check_clean();
    CHECK(open_descriptors() == before);
  }
}

TEST_CASE("cuda: GPUs that do not reach each other") {
  World world({.mappings = false, .peers = false});
  {
    const auto a = world.open(0, 0), b = world.open(0, 1);
    Diagnostics diagnostics;
    const auto memory = a->allocate(100, "scratch", diagnostics);
    const auto handle = a->export_memory(memory->data(), 100, diagnostics);
    CHECK(b->import_memory(*handle, diagnostics) == nullptr);
    CHECK(text_of(diagnostics).find("there is no access of cuda:1 to cuda:0") != std::string::npos);
  }
  world.check_clean();
}

TEST_CASE("cuda: each process has a number of its own") {
  CHECK(this_process() == this_process());
  CHECK(this_process() != Exchange::ProcessId{});
}

}  // namespace
}  // namespace mscclc::cuda
