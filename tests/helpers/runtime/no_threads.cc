#include "tests/helpers/runtime/no_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace mscclc::testing {
namespace {

constexpr int kAnyNumber = -1;
std::atomic<int> left{kAnyNumber};

}  // namespace

NoThreads::NoThreads(int allowed) { left = allowed; }
NoThreads::~NoThreads() { left = kAnyNumber; }

}  // namespace mscclc::testing

// The program's own goes before the library's, also for std::thread.
extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*fn)(void*),
    void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  std::atomic<int>& left = mscclc::testing::left;
  if (left.load() == 0) return EAGAIN;
  if (left.load() > 0) --left;
  return create(thread, attributes, fn, argument);
}
