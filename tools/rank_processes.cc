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
#include <set>
#include <string>
#include <vector>

#include "runtime/fd.h"
#include "tools/files.h"

namespace mscclc {
namespace {

struct Child {
  pid_t process = -1;
  Fd id;      ///< where it reads its id
  Fd errors;  ///< what it writes to standard error
  std::string text;
  int code = 0;
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
  if (getppid() != parent) _exit(failed);
  dup2(errors.get(), STDERR_FILENO);
  errors.reset();
  const std::string text = read_all(id.get());
  const int code = text.empty() ? failed : fn(rank, text);
  std::fflush(nullptr);
  _exit(code);
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

/// Takes what the children write until all have closed their ends, so that none waits for room.
void collect(std::vector<Child>& children) {
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
    }
  }
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

int run_processes(uint32_t ranks, const std::function<std::string()>& make_id,
                  const std::function<int(uint32_t rank, const std::string& id)>& fn, int failed) {
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
  collect(children);
  int code = id.empty() ? failed : 0;
  std::set<std::string> told;
  for (uint32_t r = 0; r < started; ++r) {
    const int status = wait_for(children[r].process);
    if (told.insert(children[r].text).second) put_error(children[r].text);
    if (WIFEXITED(status)) {
      code = std::max(code, WEXITSTATUS(status));
    } else {
      put_error(fmt::format("mscclc: rank {} was ended by signal {} ({})\n", r, WTERMSIG(status),
                            strsignal(WTERMSIG(status))));
      code = std::max(code, failed);
    }
  }
  return code;
}

}  // namespace mscclc
