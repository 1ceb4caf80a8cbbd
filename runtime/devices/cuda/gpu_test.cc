// The CUDA device on real GPUs and the real driver: one process with several, and processes that
// share by each kind of handle. Ranks are forks, so the test itself never touches the driver.
// Nothing of multicast is called here: it needs a host that is set up for it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "runtime/devices/cuda/device.h"
#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/runtime/processes.h"

namespace mscclc::cuda {
namespace {

using namespace std::chrono_literals;
using testing::Processes;
constexpr int kSkipped = 77;

/// A process's view: the driver, and what was reported.
struct Process {
  Diagnostics diagnostics;
  const Driver* driver = load_driver(diagnostics);
  std::optional<Exchange> exchange = make_exchange(diagnostics);

  int gpus() {
    int count = 0;
    if (driver != nullptr) driver->DeviceGetCount(&count);
    return count;
  }
  std::unique_ptr<CudaDevice> open(int ordinal) {
    KernelLauncher nothing_to_launch;
    nothing_to_launch.load = [](EarlyLaunch*) { return 0; };
    nothing_to_launch.keep_stack = [] { return 0; };
    return CudaDevice::open(*driver, {.ordinal = ordinal}, nothing_to_launch, *exchange,
                            diagnostics);
  }
  /// What the process ends with: 0, or the line of what failed.
  int failed(int line) {
    fmt::print(stderr, "gpu_test.cc:{}\n", line);
    for (const Diagnostic& d : diagnostics.all()) {
      fmt::print(stderr, "  {}: {}\n", d.code, d.message);
      for (const Note& note : d.notes) fmt::print(stderr, "    {}\n", note.text);
    }
    return 1;
  }
};
#define NEED(condition) \
  if (!(condition)) return p.failed(__LINE__)

/// `needs`: what this machine lacks if the processes skip it, for gpu_check.sh's last line.
void check_ends(Processes& processes, const std::string& needs = "more GPUs") {
  bool skipped = false;
  for (size_t i = 0; i < processes.count(); ++i) {
    const int end = processes.wait(i, 120s);
    skipped |= end == kSkipped;
    CHECK((end == 0 || end == kSkipped));
  }
  if (skipped) fmt::print("\nskipped: {}\n", needs);
}

std::vector<uint8_t> pattern(size_t bytes, uint8_t seed) {
  std::vector<uint8_t> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(i * 7 + seed);
  return data;
}

int one_gpu() {
  Process p;
  if (p.gpus() < 1) return kSkipped;
  const auto device = p.open(0);
  NEED(device != nullptr);
  fmt::print(stderr, "{}\n", device->name());
  for (const uint64_t bytes : {0ull, 1ull, 1000ull, 2ull << 20, (2ull << 20) + 1, 64ull << 20}) {
    const auto memory = device->allocate(bytes, "memory", p.diagnostics);
    NEED(memory != nullptr && memory->bytes() == bytes);
    std::vector<uint8_t> seen(bytes, 1);
    NEED(device->read(seen.data(), memory->data(), bytes, p.diagnostics));
    NEED(seen == std::vector<uint8_t>(bytes, 0));
    const auto sent = pattern(bytes, 3);
    NEED(device->write(memory->data(), sent.data(), bytes, p.diagnostics));
    NEED(device->read(seen.data(), memory->data(), bytes, p.diagnostics));
    NEED(seen == sent);
  }
  const auto visible = device->allocate_visible(64, "visible", p.diagnostics);
  NEED(visible != nullptr && visible->data()[63] == 0);
  abi::Context current = nullptr;
  p.driver->CtxGetCurrent(&current);
  NEED(current == nullptr);
  NEED(device->allocate(1ull << 60, "too much", p.diagnostics) == nullptr);
  int local = 0;
  NEED(!device->export_memory(&local, 4, p.diagnostics));
  return 0;
}

TEST_CASE("gpu: memory of one GPU") {
  Processes processes;
  processes.start(one_gpu);
  check_ends(processes);
}

/// Memory of GPU 1, by both allocators, as GPU 0 sees it in the same process.
int two_gpus() {
  Process p;
  if (p.gpus() < 2) return kSkipped;
  const auto a = p.open(0), b = p.open(1);
  NEED(a != nullptr && b != nullptr);
  abi::Address plain = 0;
  {
    const CurrentContext current(*b->context());
    NEED(p.driver->MemAlloc(&plain, 100000) == abi::kSuccess);
  }
  const auto mapped = b->allocate(100000, "memory", p.diagnostics);
  NEED(mapped != nullptr);
  for (uint8_t* data : {mapped->data(), pointer_to(plain)}) {
    const auto handle = b->export_memory(data + 104, 9000, p.diagnostics);
    NEED(handle && handle->offers.size() > 1);
    const auto seen_here = a->import_memory(*handle, p.diagnostics);
    NEED(seen_here != nullptr);
    const auto sent = pattern(9000, 5);
    std::vector<uint8_t> seen(9000);
    const auto own = a->allocate(9000, "own", p.diagnostics);
    NEED(a->write(own->data(), sent.data(), 9000, p.diagnostics));
    const auto lane = a->open_lane({}, p.diagnostics);
    NEED(lane != nullptr);
    NEED(lane->put({seen_here.get(), 0}, own->data(), 8992, p.diagnostics));
    NEED(lane->signal({seen_here.get(), 8992}, 42, p.diagnostics));
    NEED(lane->complete(reinterpret_cast<uint64_t*>(own->data() + 8992), 43, p.diagnostics));
    NEED(lane->flush(p.diagnostics));
    NEED(b->read(seen.data(), data + 104, 9000, p.diagnostics));
    uint64_t count = 0;
    std::memcpy(&count, seen.data() + 8992, 8);
    NEED(count == 42);
    NEED(a->read(&count, own->data() + 8992, 8, p.diagnostics));
    NEED(count == 43);
    NEED(std::equal(sent.begin(), sent.begin() + 8992, seen.begin()));
  }
  const CurrentContext current(*b->context());
  p.driver->MemFree(plain);
  return 0;
}

TEST_CASE("gpu: two GPUs of one process") {
  Processes processes;
  processes.start(two_gpus);
  check_ends(processes);
}

/// Two processes that talk over pipes: 0 exports, 1 imports.
struct Pipes {
  int to[2], back[2];
  Pipes() { REQUIRE((::pipe(to) == 0 && ::pipe(back) == 0)); }
  ~Pipes() {
    for (const int end : {to[0], to[1], back[0], back[1]}) ::close(end);
  }
};

bool send(int fd, const std::vector<uint8_t>& bytes) {
  const uint64_t size = bytes.size();
  return ::write(fd, &size, 8) == 8 &&
         ::write(fd, bytes.data(), size) == static_cast<ssize_t>(size);
}
bool receive(int fd, std::vector<uint8_t>& bytes) {
  uint64_t size = 0;
  if (::read(fd, &size, 8) != 8 || size > 60000) return false;
  bytes.resize(size);
  return ::read(fd, bytes.data(), size) == static_cast<ssize_t>(size);
}

/// Exports only `kind` (plain: memory as of cudaMalloc), waits until the peer has written.
int exporter(HandleKind kind, const Pipes& pipes) {
  Process p;
  if (p.gpus() < 1) return kSkipped;
  const auto device = p.open(0);
  NEED(device != nullptr);
  const auto memory = device->allocate(50000, "memory", p.diagnostics);
  NEED(memory != nullptr);
  abi::Address plain = 0;
  const CurrentContext current(*device->context());
  NEED(p.driver->MemAlloc(&plain, 50000) == abi::kSuccess);
  uint8_t* data = (kind == HandleKind::cuda_ipc ? pointer_to(plain) : memory->data()) + 512;
  const auto sent = pattern(40000, 9);
  NEED(device->write(data, sent.data(), 40000, p.diagnostics));
  auto handle = device->export_memory(data, 40000, p.diagnostics);
  NEED(handle.has_value());
  std::erase_if(handle->offers, [kind](const Offer& offer) { return offer.kind != kind; });
  std::vector<uint8_t> message;
  encode(*handle, message);
  NEED(send(pipes.to[1], handle->offers.empty() ? std::vector<uint8_t>{} : message));
  NEED(receive(pipes.back[0], message));
  if (handle->offers.empty()) return kSkipped;
  std::vector<uint8_t> seen(8);
  NEED(device->read(seen.data(), data, 8, p.diagnostics));
  NEED(seen == std::vector<uint8_t>(8, 77));
  uint64_t count = 0;
  NEED(device->read(&count, data + 39992, 8, p.diagnostics));
  NEED(count == 1234567890123);
  p.driver->MemFree(plain);
  return 0;
}

int importer(const Pipes& pipes) {
  Process p;
  if (p.gpus() < 1) return kSkipped;
  const auto device = p.open(p.gpus() > 1 ? 1 : 0);
  NEED(device != nullptr);
  std::vector<uint8_t> message;
  NEED(receive(pipes.to[0], message));
  if (message.empty()) return send(pipes.back[1], {}) ? kSkipped : 1;
  std::span<const uint8_t> rest = message;
  const auto handle = decode_handle(rest, p.diagnostics);
  NEED(handle.has_value());
  {
    const auto mapped = device->import_memory(*handle, p.diagnostics);
    NEED(mapped != nullptr);
    std::vector<uint8_t> seen(40000);
    NEED(device->read(seen.data(), mapped->data(), 40000, p.diagnostics));
    NEED(seen == pattern(40000, 9));
    const auto own = device->allocate(8, "own", p.diagnostics);
    const std::vector<uint8_t> mark(8, 77);
    NEED(own != nullptr && device->write(own->data(), mark.data(), 8, p.diagnostics));
    const auto lane = device->open_lane({}, p.diagnostics);
    NEED(lane != nullptr && lane->put({mapped.get(), 0}, own->data(), 8, p.diagnostics));
    NEED(lane->signal({mapped.get(), 39992}, 1234567890123, p.diagnostics));
    NEED(lane->flush(p.diagnostics));
  }
  NEED(send(pipes.back[1], {1}));
  return 0;
}

TEST_CASE("gpu: memory of another process, by each kind of handle") {
  for (const HandleKind kind :
       {HandleKind::cuda_fd, HandleKind::cuda_fabric, HandleKind::cuda_ipc}) {
    INFO(name(kind));
    const Pipes pipes;
    Processes processes;
    processes.start([&] { return exporter(kind, pipes); });
    processes.start([&] { return importer(pipes); });
    check_ends(processes, fmt::format("{} handles", name(kind)));
  }
}

/// GPU 1 and a lane's thread leave nothing on GPU 0.
int only_its_own() {
  Process p;
  if (p.gpus() < 2) return kSkipped;
  const auto device = p.open(1);
  NEED(device != nullptr);
  bool good = true;
  std::thread proxy([&] {
    good = device->bind_thread(p.diagnostics);
    const auto lane = device->open_lane({}, p.diagnostics);
    good = good && lane != nullptr && lane->flush(p.diagnostics);
  });
  proxy.join();
  NEED(good);
  using GetState = int (*)(int device, unsigned* flags, int* active);
  const auto get_state = reinterpret_cast<GetState>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  int active = 1;
  NEED(get_state != nullptr && get_state(0, &flags, &active) == 0);
  NEED(active == 0);
  return 0;
}

TEST_CASE("gpu: no context on GPUs that were not asked for") {
  Processes processes;
  processes.start(only_its_own);
  check_ends(processes);
}

/// Ten thousand times: allocate, export, import, free.
int cycles() {
  Process p;
  if (p.gpus() < 1) return kSkipped;
  const auto device = p.open(0), peer = p.open(p.gpus() > 1 ? 1 : 0);
  NEED(device != nullptr && peer != nullptr);
  const CurrentContext current(*device->context());
  size_t free_before = 0, total = 0, free_after = 0;
  size_t descriptors = 0;
  for (int i = 0; i < 10001; ++i) {
    if (i == 1) {  // the first may leave what the driver keeps
      descriptors = testing::open_descriptors();
      p.driver->MemGetInfo(&free_before, &total);
    }
    const auto memory = device->allocate(1 << 20, "memory", p.diagnostics);
    NEED(memory != nullptr);
    auto handle = device->export_memory(memory->data(), 1000, p.diagnostics);
    NEED(handle.has_value());
    if (i % 2 == 0) handle->offers.erase(handle->offers.begin());  // not in-process
    const auto mapped = peer->import_memory(*handle, p.diagnostics);
    NEED(mapped != nullptr);
  }
  p.driver->MemGetInfo(&free_after, &total);
  fmt::print(stderr, "free before {} after {}; descriptors before {} after {}\n", free_before,
             free_after, descriptors, testing::open_descriptors());
  NEED(testing::open_descriptors() == descriptors);
  NEED(free_after >= free_before);
  return 0;
}

TEST_CASE("gpu: ten thousand handles leave nothing") {
  Processes processes;
  processes.start(cycles);
  check_ends(processes);
}

}  // namespace
}  // namespace mscclc::cuda
