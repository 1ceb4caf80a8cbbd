#include <dlfcn.h>

#include <cstdlib>

#include "tests/fakes/gdrcopy/fake_gdrapi.h"

namespace mscclc::cuda::gdr {

std::string fake_library() {
  return std::string(std::getenv("TEST_SRCDIR")) + "/" + std::getenv("TEST_WORKSPACE") +
         "/tests/fakes/gdrcopy/libfake_gdrapi.so";
}

FakeGdr* reset_fake() {
  void* const library = ::dlopen(fake_library().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::abort();
  FakeGdr* const state =
      reinterpret_cast<decltype(&mscclc_fake_gdr)>(::dlsym(library, "mscclc_fake_gdr"))();
  const FakeGdr fresh;
  state->library_major = fresh.library_major;
  state->failing_call = fresh.failing_call;
  state->moved_by = fresh.moved_by;
  state->memory = nullptr;
  state->mapped = 0;
  state->misuses = 0;
  return state;
}

}  // namespace mscclc::cuda::gdr
