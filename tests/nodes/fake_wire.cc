#include "tests/nodes/fake_wire.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "runtime/api/host_device.h"

namespace mscclc::testing {
namespace {

/// What this process has of the fake library.
verbs::fake::FakeVerbs& fake_state() {
  const char* const file = std::getenv("MSCCLC_IBV_SO");
  void* const library = file == nullptr ? nullptr : ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  void* const state = library == nullptr ? nullptr : ::dlsym(library, "mscclc_fake_verbs");
  if (state == nullptr) std::abort();
  return *reinterpret_cast<decltype(&mscclc_fake_verbs)>(state)();
}

}  // namespace

FakeWire::FakeWire() {
  void* const memory =
      ::mmap(nullptr, sizeof *wire_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  wire_ = new (memory) verbs::fake::Wire;
}

FakeWire::~FakeWire() { ::munmap(wire_, sizeof *wire_); }

FarPlace FakeWire::place() const {
  return {.interface = "=lo",
          .enter =
              [wire = wire_](uint32_t) {
                ::setenv("MSCCLC_SOCKET_IFNAME", "=lo", 1);
                fake_state().wire = wire;
              },
          .open =
              [](uint32_t rank, Diagnostics& diagnostics) {
                return make_host_device(diagnostics, {}, HostLanes::copies, rank / FarJob::kOnNode,
                                        FarLanes::verbs);
              },
          .left = [] { return static_cast<uint64_t>(fake_state().objects); }};
}

}  // namespace mscclc::testing
