// The functions of libgdrapi, for memory of fake GPUs.
#include "tests/fakes/gdrcopy/fake_gdrapi.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/devices/cuda/gdrcopy/gdrcopy.h"

namespace mscclc::cuda::gdr {
namespace {

struct Pin {
  Connection of;
  uint64_t address, bytes;
  int file;
  void* mapped = nullptr;
};

std::mutex mutex;
std::atomic<int> inside{0};
std::map<unsigned long, Pin> pins;
unsigned long next_pin = 1;
uintptr_t next_connection = 1;

FakeGdr& state() { return *mscclc_fake_gdr(); }

int misuse() {
  ++state().misuses;
  return EINVAL;
}

/// 0, or with what this call is to fail.
int failure(const char* call) { return state().failing_call == call ? state().error : 0; }

/// A call: the library is for one thread at a time, so that two at once are misuse.
struct CallGuard {
  CallGuard() : lock(mutex, std::defer_lock) {
    if (inside++ != 0) (void)misuse();
    std::this_thread::yield();  // another thread that is not kept out comes in now
    lock.lock();
  }
  ~CallGuard() { --inside; }
  std::unique_lock<std::mutex> lock;
};

Pin* find(Handle handle) {
  const auto found = pins.find(handle.value);
  return found == pins.end() ? nullptr : &found->second;
}

}  // namespace
}  // namespace mscclc::cuda::gdr

namespace gdr = mscclc::cuda::gdr;

extern "C" {

gdr::FakeGdr* mscclc_fake_gdr() {
  static gdr::FakeGdr state;
  return &state;
}

gdr::Connection gdr_open() {
  const gdr::CallGuard call;
  if (gdr::failure("open") != 0) return nullptr;
  ++gdr::state().connections;
  return reinterpret_cast<gdr::Connection>(gdr::next_connection++);
}
int gdr_close(gdr::Connection connection) {
  const gdr::CallGuard call;
  for (const auto& [number, pin] : gdr::pins) {
    if (pin.of == connection) (void)gdr::misuse();
  }
  --gdr::state().connections;
  return 0;
}

void gdr_runtime_get_version(int* major, int* minor) {
  *major = gdr::state().library_major;
  *minor = 5;
}

int gdr_pin_buffer(gdr::Connection connection, unsigned long address, size_t bytes, uint64_t,
                   uint32_t, gdr::Handle* to) {
  const gdr::CallGuard call;
  constexpr uint64_t kPage = mscclc::cuda::GdrMapping::kPage;
  if (address % kPage != 0 || bytes % kPage != 0 || bytes == 0) return gdr::misuse();
  if (const int error = gdr::failure("pin_buffer"); error != 0) return error;
  const int file = gdr::state().memory ? gdr::state().memory(address, bytes) : -1;
  if (file < 0) return EINVAL;
  to->value = gdr::next_pin++;
  gdr::pins[to->value] = {connection, address, bytes, file};
  ++gdr::state().pins;
  return 0;
}
int gdr_unpin_buffer(gdr::Connection, gdr::Handle handle) {
  const gdr::CallGuard call;
  gdr::Pin* const pin = gdr::find(handle);
  if (pin == nullptr || pin->mapped != nullptr) return gdr::misuse();
  ::close(pin->file);
  gdr::pins.erase(handle.value);
  --gdr::state().pins;
  return 0;
}

int gdr_get_info_v2(gdr::Connection, gdr::Handle handle, gdr::Info* to) {
  const gdr::CallGuard call;
  gdr::Pin* const pin = gdr::find(handle);
  if (pin == nullptr) return gdr::misuse();
  *to = {};
  to->address = pin->address + gdr::state().moved_by;
  to->mapped_bytes = pin->bytes;
  return gdr::failure("get_info_v2");
}

int gdr_map(gdr::Connection, gdr::Handle handle, void** to, size_t bytes) {
  const gdr::CallGuard call;
  gdr::Pin* const pin = gdr::find(handle);
  if (pin == nullptr || pin->mapped != nullptr || bytes != pin->bytes) return gdr::misuse();
  if (const int error = gdr::failure("map"); error != 0) return error;
  const off_t begin = ::lseek(pin->file, 0, SEEK_CUR);
  void* const map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, pin->file, begin);
  if (map == MAP_FAILED) return errno;
  *to = pin->mapped = map;
  ++gdr::state().mappings;
  ++gdr::state().mapped;
  return 0;
}
int gdr_unmap(gdr::Connection, gdr::Handle handle, void* from, size_t bytes) {
  const gdr::CallGuard call;
  gdr::Pin* const pin = gdr::find(handle);
  if (pin == nullptr || from != pin->mapped || bytes != pin->bytes) return gdr::misuse();
  ::munmap(from, bytes);
  pin->mapped = nullptr;
  --gdr::state().mappings;
  return 0;
}

}  // extern "C"
