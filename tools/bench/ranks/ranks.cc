#include "tools/bench/ranks/ranks.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "runtime/api/job.h"

namespace mscclc::bench {
namespace {

constexpr int kBrokeOff = 3;
constexpr std::chrono::seconds kMeeting{120};

/// Rank 0's process hosts the job and hands the id to the others.
std::unique_ptr<Bootstrap> meet(uint32_t rank, uint32_t ranks, const int ids[2],
                                Diagnostics& diagnostics) {
  std::shared_ptr<Hub> hub;
  std::string id(UniqueId::kMaxText, '\n');
  if (rank == 0) {
    auto job =
        host_job({.size = ranks, .rank = 0, .one_machine = true, .timeout = kMeeting}, diagnostics);
    if (!job) return nullptr;
    hub = std::move(job->hub);
    const std::string text = job->id.text();
    id.replace(0, text.size(), text);
    for (uint32_t i = 1; i < ranks; ++i) {
      if (write(ids[1], id.data(), id.size()) < 0) return nullptr;
    }
  } else if (read(ids[0], id.data(), id.size()) != static_cast<ssize_t>(id.size())) {
    return nullptr;
  }
  const auto parsed = UniqueId::parse(id.substr(0, id.find('\n')), diagnostics);
  if (!parsed) return nullptr;
  return join_job(*parsed, rank, ranks, kMeeting, std::move(hub), diagnostics);
}

int run_rank(uint32_t rank, uint32_t ranks, const int ids[2],
             const std::function<int(std::unique_ptr<Bootstrap>)>& fn) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Diagnostics diagnostics;
  auto bootstrap = meet(rank, ranks, ids, diagnostics);
  if (bootstrap != nullptr) return fn(std::move(bootstrap));
  fmt::print(stderr, "{}", render_text(diagnostics, Sources{}));
  return kBrokeOff;
}

/// Waits for a child to end; 0: nothing has begun for longer than `patience`.
pid_t wait_for_one(const Watch& watch, std::chrono::seconds patience, int& status) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{20};
  uint64_t begun = watch.begun();
  auto since = Clock::now();
  for (;;) {
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended != 0) return ended;
    std::this_thread::sleep_for(kPause);
    if (watch.begun() != begun) {
      begun = watch.begun();
      since = Clock::now();
    }
    if (patience.count() != 0 && Clock::now() - since > patience) return 0;
  }
}

void end_all(const std::vector<pid_t>& children) {
  for (const pid_t child : children) kill(child, SIGKILL);
}

/// Waits for all; the first code that is not 0.
int wait_for(std::vector<pid_t> children, const Watch& watch, std::chrono::seconds patience) {
  const std::vector<pid_t> ranks = children;
  int code = 0;
  while (!children.empty()) {
    int status = 0;
    const pid_t ended = wait_for_one(watch, patience, status);
    if (ended < 0) return kBrokeOff;
    if (ended == 0) {
      fmt::print(
          stderr,
          "mscclc-bench: no end after {} s: {}; the ranks are ended (--timeout sets how long "
          "a step may take)\n",
          patience.count(), watch.what());
      code = kBrokeOff;
      end_all(children);
      patience = {};
      continue;
    }
    std::erase(children, ended);
    const int own = WIFEXITED(status) ? WEXITSTATUS(status) : kBrokeOff;
    if (own == 0 || code != 0) continue;
    code = own;
    end_all(children);
    if (!WIFSIGNALED(status)) continue;
    fmt::print(stderr, "mscclc-bench: rank {} was ended by signal {} ({})\n",
               std::ranges::find(ranks, ended) - ranks.begin(), WTERMSIG(status),
               strsignal(WTERMSIG(status)));
  }
  return code;
}

}  // namespace

void* shared_memory(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

int run_ranks(uint32_t ranks, const Watch& watch, std::chrono::seconds patience,
              const std::function<int(std::unique_ptr<Bootstrap>)>& fn) {
  int ids[2];
  if (pipe(ids) != 0) return kBrokeOff;
  std::fflush(nullptr);  // or each child would print what is buffered here
  std::vector<pid_t> children;
  for (uint32_t r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child == 0) {
      const int code = run_rank(r, ranks, ids, fn);
      std::fflush(nullptr);
      _exit(code);
    }
    children.push_back(child);
  }
  const int code = wait_for(children, watch, patience);
  close(ids[0]);
  close(ids[1]);
  return code;
}

}  // namespace mscclc::bench
