#include "tools/run/rank_processes.h"

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
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/job.h"
#include "runtime/support/fd.h"
#include "tools/io/files.h"
#include "tools/run/distinct_texts.h"

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
  bool overdue = false;  ///< the same, as it did not end by itself
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

/// Does not return. A rank must not outlive the process that prints for it.
[[noreturn]] void be_child(uint32_t rank, Fd id, Fd errors, pid_t parent,
                           const std::function<int(uint32_t, const std::string&)>& fn, int failed) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);  // a table without a reader is an error, which the parent reports
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

bool is_stopped(pid_t process) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(process), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == process;
}

void stop_others(std::vector<Child>& children, const Child& failed) {
  for (Child& child : children) {
    if (&child == &failed || child.errors.get() < 0) continue;
    child.stopped = true;
    kill(child.process, SIGKILL);
  }
}

/// Takes what the children write until all have ended, so that none waits for room.
class Collection {
 public:
  Collection(std::vector<Child>& children, const RankProcesses& how)
      : children_(children), how_(how), open_(children.size()) {}

  /// Returns the greatest exit code.
  int run() {
    while (open_ > 0) {
      wait();
      if (is_overdue()) end_the_rest();
    }
    put_error(said_.ranks_left_out());
    return written_ ? code_ : how_.unwritten;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void wait() {
    std::vector<pollfd> polled;
    for (const Child& child : children_) polled.push_back({child.errors.get(), POLLIN, 0});
    // While all run there is nothing to be late for.
    const bool some_ended = open_ < children_.size() && !overdue_;
    if (::poll(polled.data(), polled.size(), some_ended ? kTickMs : -1) <= 0) return;
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) take(children_[i]);
    }
  }

  void take(Child& child) {
    char buffer[4096];
    const ssize_t n = read(child.errors.get(), buffer, sizeof buffer);
    if (n > 0) child.text.append(buffer, static_cast<size_t>(n));
    if (n > 0 || (n < 0 && errno == EINTR)) return;
    --open_;
    last_end_ = Clock::now();
    child.errors.reset();
    child.status = wait_for(child.process);
    const bool well = WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0;
    failed_ |= !well;
    if (how_.end_together && !well && !child.stopped) stop_others(children_, child);
    print();
  }

  /// What has ended comes out in the order of the ranks, each text once.
  void print() {
    for (; printed_ < children_.size() && !children_[printed_].errors.valid(); ++printed_) {
      const Child& child = children_[printed_];
      put_error(said_.add(printed_, child.text));
      if (!child.stopped) count(printed_, child);
    }
  }

  void count(uint32_t rank, const Child& child) {
    if (child.overdue) {
      const double limit = std::chrono::duration<double>(how_.patience).count();
      put_error(fmt::format(
          "mscclc: rank {} had not ended {:g} s after the others, and was killed\n", rank, limit));
      code_ = std::max(code_, how_.failed);
    } else if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == kUnwritten) {
      written_ = false;
    } else if (WIFEXITED(child.status)) {
      code_ = std::max(code_, WEXITSTATUS(child.status));
    } else {
      put_error(fmt::format("mscclc: rank {} was ended by signal {} ({})\n", rank,
                            WTERMSIG(child.status), strsignal(WTERMSIG(child.status))));
      code_ = std::max(code_, how_.failed);
    }
  }

  /// Ranks that live end with the first that fails. After success one may still take its time, to
  /// write to a pager, say; unless it is stopped, and will never end.
  bool is_overdue() const {
    if (open_ == children_.size() || overdue_ || Clock::now() - last_end_ < how_.patience) {
      return false;
    }
    return failed_ || std::any_of(children_.begin(), children_.end(), [](const Child& child) {
             return child.errors.valid() && is_stopped(child.process);
           });
  }

  void end_the_rest() {
    overdue_ = true;
    for (Child& child : children_) {
      if (!child.errors.valid()) continue;
      child.overdue = !child.stopped;
      kill(child.process, SIGKILL);
    }
  }

  static constexpr int kTickMs = 100;

  std::vector<Child>& children_;
  const RankProcesses& how_;
  size_t open_;           ///< children that have not ended
  uint32_t printed_ = 0;  ///< children that have been printed
  DistinctTexts said_;
  Clock::time_point last_end_;
  bool failed_ = false, overdue_ = false, written_ = true;
  int code_ = 0;
};

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
  return std::max(id.empty() ? failed : 0, Collection(children, how).run());
}

int run_job(const RankProcesses& how, const JobTimes& times, const JobRank& fn,
            Diagnostics& diagnostics) {
  std::optional<HostedJob> job;
  const auto make_id = [&]() -> std::string {
    job = host_job({.size = how.ranks,
                    .one_machine = true,
                    .timeout = times.timeout,
                    .silence = times.silence},
                   diagnostics);
    return job ? job->id.text() : "";
  };
  const auto be_rank = [&](uint32_t rank, const std::string& text) {
    Diagnostics own;
    const auto id = UniqueId::parse(text, own);
    std::unique_ptr<Bootstrap> bootstrap;
    if (id) bootstrap = join_job(*id, rank, how.ranks, times.timeout, nullptr, own);
    return fn(rank, std::move(bootstrap), own);
  };
  return run_processes(how, make_id, be_rank);
}

}  // namespace mscclc
