#include "tests/runtime/ranks.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "runtime/bootstrap/in_process.h"
#include "runtime/bootstrap/job.h"
#include "runtime/host/host_device.h"

namespace mscclc::testing {
namespace {

std::string run_rank(std::unique_ptr<Bootstrap> bootstrap, const RankBody& body,
                     std::chrono::milliseconds waits, const OpenDevice& open,
                     Diagnostics& diagnostics) {
  if (bootstrap == nullptr) return text(diagnostics);
  std::shared_ptr<Device> device = open(bootstrap->rank(), diagnostics);
  if (device == nullptr) return text(diagnostics);
  auto communicator =
      Communicator::create(std::move(bootstrap), device, {.timeout = waits}, diagnostics);
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

std::string run_threads(uint32_t ranks, const RankBody& body, const Timeouts& timeouts,
                        const OpenDevice& open) {
  auto bootstraps = make_in_process_bootstraps(ranks, timeouts.bootstrap);
  std::vector<std::string> said(ranks);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r, own = std::move(bootstraps[r])]() mutable {
      Diagnostics diagnostics;
      said[r] = run_rank(std::move(own), body, timeouts.waits, open, diagnostics);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return all_of(said);
}

// The parent starts no thread before the fork; the hub runs in rank 0.
std::string run_processes(uint32_t ranks, const RankBody& body, const Timeouts& timeouts,
                          const OpenDevice& open) {
  int ids[2];
  if (pipe(ids) != 0) return "pipe";
  std::vector<pid_t> children;
  std::vector<int> outputs;
  for (uint32_t r = 0; r < ranks; ++r) {
    int out[2];
    if (pipe(out) != 0) return "pipe";
    const pid_t child = fork();
    if (child == 0) {
      close(out[0]);
      Diagnostics diagnostics;
      std::unique_ptr<Hub> hub;
      std::string id(UniqueId::kMostText, '\0');
      if (r == 0) {
        auto job =
            host_job({.size = ranks, .rank = 0, .one_machine = true, .timeout = timeouts.bootstrap},
                     diagnostics);
        if (!job) _exit(3);
        id = job->id.text();
        hub = std::move(job->hub);
        std::string padded = id;
        padded.resize(UniqueId::kMostText, '\n');
        for (uint32_t i = 1; i < ranks; ++i) {
          if (write(ids[1], padded.data(), padded.size()) < 0) _exit(3);
        }
      } else {
        if (read(ids[0], id.data(), id.size()) != static_cast<ssize_t>(id.size())) _exit(3);
        id.resize(id.find('\n'));
      }
      const auto parsed = UniqueId::parse(id, diagnostics);
      std::string said = text(diagnostics);
      if (parsed) {
        said =
            run_rank(join_job(*parsed, r, ranks, timeouts.bootstrap, std::move(hub), diagnostics),
                     body, timeouts.waits, open, diagnostics);
      }
      if (write(out[1], said.data(), said.size()) < 0) _exit(3);
      _exit(0);
    }
    close(out[1]);
    children.push_back(child);
    outputs.push_back(out[0]);
  }
  close(ids[0]);
  close(ids[1]);
  std::vector<std::string> said;
  for (size_t i = 0; i < children.size(); ++i) {
    said.push_back(drain(outputs[i]));
    int status = 0;
    waitpid(children[i], &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      said.back() += fmt::format("ended with status {:#x}", status);
    }
  }
  return all_of(said);
}

}  // namespace mscclc::testing
