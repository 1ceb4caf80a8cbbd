// A process ends while kernels are compiled, or forks: each case is a process of its own.
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string_view>
#include <thread>

#include "executor/testing/test_plans.h"
#include "runtime/devices/kernels/background_thread.h"
#include "runtime/devices/kernels/kernel_maker.h"
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

KernelOrder some_order() {
  return {std::make_shared<const Program>(testing::one_shot(2, 2, PacketFormat::LL16).program),
          std::string(64, 'd'), "sm_90", false};
}

/// Waits for the end of the test.
class StoppedCompiler final : public CubinCompiler {
 public:
  Result<std::string> compile(const std::string&, const std::string&) const override {
    ++shared_page->begun;
    while (shared_page->ended == 0) std::this_thread::yield();
    return Error{"it was stopped"};
  }
  const std::string& version() const override { return text_; }
  const std::string& file() const override { return text_; }

 private:
  const std::string text_ = "a compiler";
};

/// What is opened in a folder from now on.
class Openings {
 public:
  explicit Openings(const std::filesystem::path& folder) : events_(inotify_init1(IN_CLOEXEC)) {
    REQUIRE(inotify_add_watch(events_, folder.c_str(), IN_OPEN) >= 0);
  }
  ~Openings() { ::close(events_); }
  Openings(const Openings&) = delete;
  Openings& operator=(const Openings&) = delete;
  /// Waits for a file whose name ends so.
  void await(std::string_view suffix) const {
    alignas(inotify_event) std::array<char, 4096> buffer;
    for (;;) {
      const ssize_t got = ::read(events_, buffer.data(), buffer.size());
      REQUIRE(got > 0);
      for (ssize_t at = 0; at < got;) {
        const auto* const event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
        if (event->len != 0 && std::string_view(event->name).ends_with(suffix)) return;
        at += static_cast<ssize_t>(sizeof *event + event->len);
      }
    }
  }

 private:
  const int events_;
};

TEST_CASE("a process that ends does not wait for what another one compiles, nor begins it") {
  static std::shared_ptr<const OrderedKernels> ordered;
  static std::unique_ptr<CachingKernelMaker> maker;
  const char* const base = std::getenv("TEST_TMPDIR");
  const auto folder = std::filesystem::path(base == nullptr ? "/tmp" : base) / "two_compile";
  const auto order = [&] {
    maker = std::make_unique<CachingKernelMaker>(
        []() -> Result<std::unique_ptr<CubinCompiler>> {
          return std::make_unique<StoppedCompiler>();
        },
        KernelCache({folder}));
    ordered = maker->order(some_order());
  };
  shared_page = make_shared_page();
  const pid_t other = fork();
  REQUIRE(other >= 0);
  if (other == 0) {
    order();
    while (shared_page->ended == 0 && ordered->result() == nullptr) std::this_thread::yield();
    std::_Exit(0);
  }
  int status = -1;
  while (shared_page->begun == 0) {
    REQUIRE(waitpid(other, &status, WNOHANG) == 0);  // it has not failed
    std::this_thread::yield();
  }
  CHECK(status_of([&] {
          // After all that is registered later.
          (void)std::atexit([] { std::_Exit(ordered->result() == nullptr ? 1 : 7); });
          const Openings openings(folder);
          order();
          openings.await(".turn");
          std::exit(0);
        }) == 7);
  CHECK(shared_page->begun == 1);
  shared_page->ended = 1;
  CHECK(waitpid(other, &status, 0) == other);
  std::filesystem::remove_all(folder);
}

/// Loads something at its first use, and is slow.
class LoadingCompiler final : public CubinCompiler {
 public:
  Result<std::string> compile(const std::string&, const std::string& architecture) const override {
    (void)prepare(architecture);
    compile_slowly();
    return Error{"it compiles nothing"};
  }
  Result<void> prepare(const std::string&) const override {
    std::call_once(loaded_, load_library);
    return {};
  }
  const std::string& version() const override { return text_; }
  const std::string& file() const override { return text_; }

 private:
  mutable std::once_flag loaded_;
  const std::string text_ = "a compiler";
};

TEST_CASE("what the first compilation loads stays until it has ended") {
  shared_page = make_shared_page();
  CHECK(status_of([] {
          static CachingKernelMaker maker(
              []() -> Result<std::unique_ptr<CubinCompiler>> {
                return std::make_unique<LoadingCompiler>();
              },
              KernelCache({}));
          static const auto ordered = maker.order(some_order());
          while (shared_page->begun == 0 && ordered->result() == nullptr) std::this_thread::yield();
          std::exit(7);
        }) == 7);
  CHECK(shared_page->ended == 1);
  CHECK(shared_page->after_end == 0);
}

TEST_CASE("the thread does not end beside what its compiler has") {
  shared_page = make_shared_page();
  CHECK(status_of([] {
          (void)std::atexit([] { std::this_thread::sleep_for(std::chrono::milliseconds(200)); });
          (void)background_thread().add([] {
            thread_local const std::shared_ptr<void> of_thread(nullptr,
                                                               [](void*) { ++shared_page->ended; });
            ++shared_page->begun;
          });
          while (shared_page->begun == 0) std::this_thread::yield();
          std::exit(7);
        }) == 7);
  CHECK(shared_page->ended == 0);
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
