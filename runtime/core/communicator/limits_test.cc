// Real limits on processes and memory, in a process of its own: what cannot be had is an error, and
// nothing aborts.
#include <grp.h>
#include <sys/resource.h>

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <new>
#include <thread>
#include <vector>

#include "ir/program/program.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/host_device.h"
#include "runtime/api/job.h"
#include "tests/helpers/runtime/processes.h"

namespace mscclc {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{300'000};  // far beyond what is needed
constexpr uid_t kUnprivileged = 65534;

enum Exit : int { kMade, kNoThread, kNoMemory, kThrown, kOther, kNotLimited };

/// One rank, with all the threads that it needs.
Exit make_rank(Diagnostics& diagnostics) {
  const std::shared_ptr<Device> device = make_host_device(diagnostics);
  if (device == nullptr) return kOther;
  auto job = host_job({.size = 1, .one_machine = true, .timeout = kPatience}, diagnostics);
  if (!job) return kOther;
  auto bootstrap = join_job(job->id, 0, 1, kPatience, std::move(job->hub), diagnostics);
  if (bootstrap == nullptr) return kOther;
  const auto communicator = Communicator::create(std::move(bootstrap), device, {}, diagnostics);
  if (communicator == nullptr) return kOther;
  const StreamHandle stream = device->create_stream(diagnostics);
  if (stream == nullptr) return kOther;
  const auto memory = device->allocate(uint64_t{1} << 30, "a buffer", diagnostics);
  return memory == nullptr ? kOther : kMade;
}

Exit end_of(Exit (&fn)(Diagnostics&)) {
  Diagnostics diagnostics;
  try {
    const Exit made = fn(diagnostics);
    if (made == kMade) return kMade;
  } catch (const std::bad_alloc&) {
    return kThrown;  // to the caller, which may go on
  }
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.code == "no-thread") return kNoThread;
    if (d.code == "out-of-memory") return kNoMemory;
    std::fprintf(stderr, "%s: %s\n", d.code.c_str(), d.message.c_str());
  }
  return kOther;
}

bool limit(int what, uint64_t most) {
  const rlimit limits{most, most};
  return ::setrlimit(static_cast<__rlimit_resource>(what), &limits) == 0;
}

/// The superuser is not limited in processes.
bool drop_privileges() {
  if (::geteuid() != 0) return true;
  return ::setgroups(0, nullptr) == 0 &&
         ::setresgid(kUnprivileged, kUnprivileged, kUnprivileged) == 0 &&
         ::setresuid(kUnprivileged, kUnprivileged, kUnprivileged) == 0;
}

uint64_t address_space() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST_CASE("no more processes: an error says that there is no thread") {
  testing::Processes processes;
  processes.start([] {
    if (!drop_privileges() || !limit(RLIMIT_NPROC, 0)) return static_cast<int>(kNotLimited);
    return static_cast<int>(end_of(make_rank));
  });
  const int ended = processes.wait(0, kPatience);
  if (ended == kNotLimited) {
    WARN("this user may not give up its rights; not tested");
  } else {
    CHECK(ended == kNoThread);
  }
}

// From where nothing can be had to where all threads start, but a gigabyte cannot be had.
TEST_CASE("little memory: an error says what could not be had") {
  testing::Processes processes;
  constexpr uint64_t kMegabytes[] = {0, 1, 4, 9, 17, 25, 33, 41, 60, 120, 400};
  for (const uint64_t megabytes : kMegabytes) {
    processes.start([megabytes] {
      if (!limit(RLIMIT_AS, address_space() + (megabytes << 20)))
        return static_cast<int>(kNotLimited);
      return static_cast<int>(end_of(make_rank));
    });
  }
  int no_thread = 0, no_memory = 0;
  for (size_t i = 0; i < processes.count(); ++i) {
    const int ended = processes.wait(i, kPatience);
    INFO(kMegabytes[i] << " MiB more: " << ended);
    CHECK((ended == kNoThread || ended == kNoMemory || ended == kThrown));
    no_thread += ended == kNoThread;
    no_memory += ended == kNoMemory;
  }
  CHECK(no_thread > 0);
  CHECK(no_memory > 0);
}

/// Two ranks of this process exchange what may be too much for it. Whichever thread finds no
/// memory, of the library or a caller's, it must end in an error at both.
Exit exchange_within(uint64_t megabytes) {
  Diagnostics diagnostics;
  auto job = host_job({.size = 2, .one_machine = true, .timeout = kPatience}, diagnostics);
  if (!job) return kOther;
  std::barrier<> both(2);
  std::vector<std::thread> ranks;
  std::atomic<uint32_t> right{0};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    auto hub = rank == 0 ? std::move(job->hub) : nullptr;
    ranks.emplace_back([&, rank, hub = std::move(hub)] {
      Diagnostics errors;
      const auto bootstrap = join_job(job->id, rank, 2, kPatience, hub, errors);
      const std::vector<uint8_t> own(Bootstrap::kMaxBytes);
      both.arrive_and_wait();
      if (rank == 0) (void)limit(RLIMIT_AS, address_space() + (megabytes << 20));
      both.arrive_and_wait();
      try {
        std::vector<std::vector<uint8_t>> all;
        right += bootstrap != nullptr && bootstrap->all_gather(own, "much", all, errors) ? 1 : 0;
      } catch (const std::bad_alloc&) {
        bootstrap->fail("no memory");
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return right == 2 ? kMade : kNoMemory;
}

TEST_CASE("too little memory for what ranks exchange: an error, and nothing aborts") {
  testing::Processes processes;
  constexpr uint64_t kMegabytes[] = {0, 8, 24, 40, 80, 2000};
  for (const uint64_t megabytes : kMegabytes) {
    processes.start([megabytes] { return static_cast<int>(exchange_within(megabytes)); });
  }
  for (size_t i = 0; i < processes.count(); ++i) {
    INFO(kMegabytes[i] << " MiB more");
    const int ended = processes.wait(i, 2 * kPatience);
    CHECK((ended == kNoMemory || ended == kMade));
    if (i == 0) CHECK(ended == kNoMemory);
    if (i + 1 == processes.count()) CHECK(ended == kMade);
  }
}

TEST_CASE("files may not grow: shared memory is an error, and no signal") {
  testing::Processes processes;
  processes.start([] {
    if (!limit(RLIMIT_FSIZE, 4096)) return static_cast<int>(kNotLimited);
    Diagnostics diagnostics;
    const auto device = make_host_device(diagnostics);
    if (device == nullptr || device->allocate(8192, "a buffer", diagnostics) != nullptr) {
      return static_cast<int>(kOther);
    }
    const Diagnostic& error = diagnostics.all().front();
    const bool expected =
        error.code == "out-of-memory" &&
        error.message ==
            "cannot allocate 8192 bytes of shared memory for a buffer: ftruncate: "
            "File too large (27); the limit is 'ulimit -f'";
    return static_cast<int>(expected ? kNoMemory : kOther);
  });
  CHECK(processes.wait(0, kPatience) == kNoMemory);
}

}  // namespace
}  // namespace mscclc
