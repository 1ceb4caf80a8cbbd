#include "tests/runtime/ranks.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <thread>

#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "runtime/api/job.h"

namespace mscclc::testing {
namespace {

std::string run_rank(std::unique_ptr<Bootstrap> bootstrap, const RankBody& body,
                     const CommunicatorOptions& options, const OpenDevice& open,
                     Diagnostics& diagnostics) {
  if (bootstrap == nullptr) return text(diagnostics);
  std::shared_ptr<Device> device = open(bootstrap->rank(), diagnostics);  // nullptr: all learn it
  auto communicator = Communicator::create(std::move(bootstrap), device, options, diagnostics);
  return communicator == nullptr ? text(diagnostics) : body(*communicator);
}

std::string all_of(const std::vector<std::string>& said) {
  std::string all;
  for (size_t r = 0; r < said.size(); ++r) {
    if (!said[r].empty()) all += fmt::format("rank {}: {}\n", r, said[r]);
  }
  return all;
}

/// All that comes out of a pipe until its end.
std::string drain(int fd) {
  std::string all;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;) {
    all.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return all;
}

}  // namespace

std::string text(const Diagnostics& diagnostics) {
  return render_text(diagnostics, Sources{}, 100);
}

std::unique_ptr<Device> open_host(uint32_t, Diagnostics& diagnostics) {
  return make_host_device(diagnostics);
}

std::vector<std::string> threads(uint32_t ranks, const RankBody& body, const Timeouts& timeouts,
                                 const OpenDevice& open) {
  auto bootstraps = make_in_process_bootstraps(ranks, timeouts.bootstrap);
  std::vector<std::string> said(ranks);
  std::vector<std::thread> running;
  for (uint32_t r = 0; r < ranks; ++r) {
    running.emplace_back([&, r, own = std::move(bootstraps[r])]() mutable {
      Diagnostics diagnostics;
      said[r] = run_rank(std::move(own), body, {.timeout = timeouts.waits}, open, diagnostics);
    });
  }
  for (std::thread& thread : running) thread.join();
  return said;
}

namespace {

/// Rank 0's process makes the job's id and gives it to the others through a pipe.
std::unique_ptr<Bootstrap> meet(uint32_t rank, uint32_t ranks, const int (&ids)[2],
                                const Timeouts& timeouts, Diagnostics& diagnostics) {
  const auto timeout = timeouts.bootstrap;
  std::shared_ptr<Hub> hub;
  std::array<char, UniqueId::kMaxText> text{};
  if (rank == 0) {
    auto job = host_job({.size = ranks,
                         .rank = 0,
                         .one_machine = true,
                         .timeout = timeout,
                         .silence = timeouts.silence},
                        diagnostics);
    if (!job) return nullptr;
    job->id.text().copy(text.data(), text.size() - 1);
    hub = std::move(job->hub);
    for (uint32_t i = 1; i < ranks; ++i) {
      if (write(ids[1], text.data(), text.size()) < 0) return nullptr;
    }
  } else if (read(ids[0], text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return nullptr;
  }
  const auto id = UniqueId::parse(text.data(), diagnostics);
  return id ? join_job(*id, rank, ranks, timeout, std::move(hub), diagnostics) : nullptr;
}

}  // namespace

// No thread is started before the forks.
std::vector<Outcome> processes(uint32_t ranks, const RankBody& body, const Timeouts& timeouts,
                               const Wrap& wrap, const OpenDevice& open) {
  int ids[2];
  if (pipe(ids) != 0) std::abort();
  std::vector<pid_t> children;
  std::vector<int> outputs;
  for (uint32_t r = 0; r < ranks; ++r) {
    int out[2];
    if (pipe(out) != 0) std::abort();
    const pid_t child = fork();
    if (child == 0) {
      close(out[0]);
      Diagnostics diagnostics;
      std::unique_ptr<Bootstrap> bootstrap = meet(r, ranks, ids, timeouts, diagnostics);
      if (wrap && bootstrap != nullptr) bootstrap = wrap(std::move(bootstrap));
      const std::string said = run_rank(
          std::move(bootstrap), body,
          {.timeout = timeouts.waits, .ends_process = timeouts.ends_process}, open, diagnostics);
      _exit(write(out[1], said.data(), said.size()) < 0 ? 1 : 0);
    }
    close(out[1]);
    children.push_back(child);
    outputs.push_back(out[0]);
  }
  close(ids[0]);
  close(ids[1]);
  std::vector<Outcome> ended(ranks);
  const auto is_stopped = [&](uint32_t r) { return timeouts.stopped == r; };
  for (uint32_t r = 0; r < ranks; ++r) {
    if (!is_stopped(r)) ended[r].said = drain(outputs[r]);
  }
  for (uint32_t r = 0; r < ranks; ++r) {
    if (is_stopped(r)) {
      kill(children[r], SIGKILL);
      ended[r].said = drain(outputs[r]);
    }
    int status = 0;
    waitpid(children[r], &status, 0);
    if (WIFSIGNALED(status)) ended[r].signal = WTERMSIG(status);
  }
  return ended;
}

std::string run_threads(uint32_t ranks, const RankBody& body, const Timeouts& timeouts,
                        const OpenDevice& open) {
  return all_of(threads(ranks, body, timeouts, open));
}

std::string run_processes(uint32_t ranks, const RankBody& body, const Timeouts& timeouts,
                          const OpenDevice& open) {
  std::vector<std::string> said;
  for (const Outcome& ended : processes(ranks, body, timeouts, {}, open)) {
    said.push_back(ended.signal == 0 ? ended.said
                                     : fmt::format("killed by signal {}", ended.signal));
  }
  return all_of(said);
}

bool all_name(const std::vector<Outcome>& ended, uint32_t victim) {
  const std::string name = fmt::format("rank {}", victim);
  bool all = true;
  for (uint32_t r = 0; r < ended.size(); ++r) {
    if (r == victim) continue;
    all &= ended[r].signal == 0 && ended[r].said.find(name) != std::string::npos;
  }
  return all;
}

}  // namespace mscclc::testing
