#include "tools/rank_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/bootstrap/job.h"
#include "runtime/fd.h"
#include "tools/files.h"

namespace mscclc {
namespace {

/// What a child that could not write its standard output returns: no code of its function.
constexpr int kUnwritten = 250;

struct Child {
  pid_t process = -1;
  Fd id;      ///< where it reads its id
  Fd errors;  ///< what it writes to standard error
  std::string text;
  int status = 0;        ///< as waitpid() gives it, once it has ended
  bool stopped = false;  ///< by this process, for another's sake
};

bool make_pipe(Fd& from, Fd& to) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  from.reset(ends[0]);
  to.reset(ends[1]);
  return true;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0) {
      text.append(buffer, static_cast<size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      return text;
    }
  }
}

/// Does not return. A rank must not outlive who prints for it.
[[noreturn]] void be_child(uint32_t rank, Fd id, Fd errors, pid_t parent,
                           const std::function<int(uint32_t, const std::string&)>& fn, int failed) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);  // nobody reads the table: an error, which the parent tells
  if (getppid() != parent) _exit(failed);
  dup2(errors.get(), STDERR_FILENO);
  errors.reset();
  const std::string text = read_all(id.get());
  const int code = text.empty() ? failed : fn(rank, text);
  const bool written = flush_output();
  std::fflush(stderr);
  _exit(written ? code : kUnwritten);
}

// Ends of the pipes of ranks before are inherited; those that are written to must be closed, or
// their readers would wait for this rank too.
bool start(uint32_t rank, std::vector<Child>& children, std::vector<Fd>& id_ends,
           const std::function<int(uint32_t, const std::string&)>& fn, int failed) {
  Fd id, errors;
  Child& child = children[rank];
  if (!make_pipe(id, id_ends[rank]) || !make_pipe(child.errors, errors)) return false;
  const pid_t parent = getpid();
  child.process = fork();
  if (child.process == 0) {
    for (Fd& end : id_ends) end.reset();
    be_child(rank, std::move(id), std::move(errors), parent, fn, failed);
  }
  return child.process > 0;
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void stop_others(std::vector<Child>& children, const Child& failed) {
  for (Child& child : children) {
    if (&child == &failed || child.errors.get() < 0) continue;
    child.stopped = true;
    kill(child.process, SIGKILL);
  }
}

/// Takes what the children write until all have closed their ends, so that none waits for room, and
/// waits for each.
void collect(std::vector<Child>& children, bool end_together) {
  std::vector<pollfd> polled;
  for (const Child& child : children) polled.push_back({child.errors.get(), POLLIN, 0});
  size_t open = children.size();
  while (open > 0 && (poll(polled.data(), polled.size(), -1) >= 0 || errno == EINTR)) {
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = read(polled[i].fd, buffer, sizeof buffer);
      if (n > 0) children[i].text.append(buffer, static_cast<size_t>(n));
      if (n > 0 || (n < 0 && errno == EINTR)) continue;
      polled[i].fd = -1;
      --open;
      Child& child = children[i];
      child.errors.reset();
      child.status = wait_for(child.process);
      const bool well = WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0;
      if (end_together && !well && !child.stopped) stop_others(children, child);
    }
  }
}

/// Prints what the children said, and returns the greatest exit code.
int report(const std::vector<Child>& children, const RankProcesses& how) {
  int code = 0;
  bool written = true;
  std::set<std::string> told;
  for (size_t r = 0; r < children.size(); ++r) {
    const Child& child = children[r];
    if (told.insert(child.text).second) put_error(child.text);
    if (child.stopped) continue;
    if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == kUnwritten) {
      written = false;
    } else if (WIFEXITED(child.status)) {
      code = std::max(code, WEXITSTATUS(child.status));
    } else {
      put_error(fmt::format("mscclc: rank {} was ended by signal {} ({})\n", r,
                            WTERMSIG(child.status), strsignal(WTERMSIG(child.status))));
      code = std::max(code, how.failed);
    }
  }
  return written ? code : how.unwritten;
}

}  // namespace

int run_processes(const RankProcesses& how, const std::function<std::string()>& make_id,
                  const std::function<int(uint32_t rank, const std::string& id)>& fn) {
  const uint32_t ranks = how.ranks;
  const int failed = how.failed;
  std::fflush(nullptr);  // or each child would print what is buffered here
  std::vector<Child> children(ranks);
  std::vector<Fd> id_ends(ranks);
  uint32_t started = 0;
  while (started < ranks && start(started, children, id_ends, fn, failed)) {
    ++started;
  }
  std::string id;
  if (started < ranks) {
    put_error(fmt::format("mscclc: cannot start a process for rank {}: {}\n", started,
                          error_text(errno)));
  } else {
    id = make_id();  // "": reported; children then find the end of the pipe
  }
  for (uint32_t r = 0; r < started; ++r) {
    // A pipe has room for so little at once.
    if (!id.empty() && write(id_ends[r].get(), id.data(), id.size()) < 0) id.clear();
    id_ends[r].reset();
  }
  children.resize(started);
  collect(children, how.end_together);
  return std::max(id.empty() ? failed : 0, report(children, how));
}

int run_job(const RankProcesses& how, std::chrono::milliseconds timeout, const JobRank& fn,
            Diagnostics& diagnostics) {
  std::optional<HostedJob> job;
  const auto make_id = [&]() -> std::string {
    job = host_job({.size = how.ranks, .one_machine = true, .timeout = timeout}, diagnostics);
    return job ? job->id.text() : "";
  };
  const auto be_rank = [&](uint32_t rank, const std::string& text) {
    Diagnostics own;
    const auto id = UniqueId::parse(text, own);
    std::unique_ptr<Bootstrap> bootstrap;
    if (id) bootstrap = join_job(*id, rank, how.ranks, timeout, nullptr, own);
    return fn(rank, std::move(bootstrap), own);
  };
  return run_processes(how, make_id, be_rank);
}

}  // namespace mscclc
