// A process ends while kernels are compiled, or forks: each case is a process of its own.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <thread>

#include "runtime/devices/kernels/background_thread.h"
#include "tests/helpers/runtime/longer_times.h"

namespace mscclc {
namespace {

/// What a child and its parent both see.
struct Shared {
  std::atomic<int> begun{0}, ended{0};
  std::atomic<int> after_end{0};  ///< jobs that were at work when the last handler ran
};

Shared* make_shared_page() {
  void* const page =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  return new (page) Shared;
}

/// The exit status of a child that does this.
template <class Work>
int status_of(const Work& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) work();
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

Shared* shared_page = nullptr;

/// Stands for the end of a library of the compiler's that is loaded now.
void load_library() {
  (void)std::atexit([] {
    if (shared_page->begun != shared_page->ended) ++shared_page->after_end;
  });
}

/// So long that the process is at its end by then.
std::chrono::milliseconds compilation{300};

void compile_slowly() {
  ++shared_page->begun;
  std::this_thread::sleep_for(compilation);
  ++shared_page->ended;
}

TEST_CASE("a process that ends lets the compilation end that is under way, and drops the others") {
  const auto is_right = [](int factor) {
    compilation = factor * std::chrono::milliseconds(300);
    shared_page = make_shared_page();
    CHECK(status_of([] {
            load_library();
            for (int i = 0; i < 3; ++i) (void)background_thread().add(compile_slowly);
            while (shared_page->begun == 0) std::this_thread::yield();
            std::exit(7);
          }) == 7);
    CHECK(shared_page->ended == shared_page->begun);
    CHECK(shared_page->after_end == 0);
    return shared_page->begun == 1;
  };
  CHECK(testing::right_in_longer_times(is_right));
}

TEST_CASE("what the first compilation loads stays until the last one has ended") {
  shared_page = make_shared_page();
  CHECK(status_of([] {
          (void)background_thread().add(load_library);
          (void)background_thread().add(compile_slowly);
          while (shared_page->begun == 0) std::this_thread::yield();
          std::exit(7);
        }) == 7);
  CHECK(shared_page->ended == 1);
  CHECK(shared_page->after_end == 0);
}

TEST_CASE("a process without work, or with a thread that is idle, ends at once") {
  CHECK(status_of([] {
          (void)background_thread();
          std::exit(3);
        }) == 3);
  CHECK(status_of([] {
          std::atomic<bool> done{false};
          (void)background_thread().add([&] { done = true; });
          while (!done) std::this_thread::yield();
          std::exit(4);
        }) == 4);
}

TEST_CASE("a child of a process that compiles does not") {
  CHECK(status_of([] {
          std::atomic<bool> done{false};
          if (!background_thread().add([&] { done = true; })) std::exit(1);
          while (!done) std::this_thread::yield();
          const int inner = status_of([] {
            const auto taken = background_thread().add([] {});
            std::exit(taken ? 1 : background_thread().why_not() ? 5 : 2);
          });
          std::exit(inner);
        }) == 5);
}

TEST_CASE("no more jobs wait than there may") {
  CHECK(status_of([] {
          std::atomic<bool> go{false}, begun{false};
          (void)background_thread().add([&] {
            begun = true;
            while (!go) std::this_thread::yield();
          });
          while (!begun) std::this_thread::yield();
          for (size_t i = 0; i < BackgroundThread::kMaxJobs; ++i) {
            if (!background_thread().add([] {})) std::exit(1);
          }
          const bool refused = !background_thread().add([] {});
          go = true;
          std::exit(refused ? 6 : 2);
        }) == 6);
}

}  // namespace
}  // namespace mscclc
