// For tests: ranks as processes. Each is a fork of the test; it says how it ended by its exit
// code.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace mscclc::testing {

/// Lets processes wait for what others have done. To be made before they start.
class Signal {
 public:
  Signal() : made_(::pipe(ends_) == 0) {}
  ~Signal() {
    if (made_) ::close(ends_[0]), ::close(ends_[1]);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  /// False: the system could not do it.
  [[nodiscard]] bool give() const { return made_ && ::write(ends_[1], "", 1) == 1; }
  /// Waits until it has been given, once for each time it is taken. False: as for give().
  [[nodiscard]] bool take() const {
    char byte;
    return made_ && ::read(ends_[0], &byte, 1) == 1;
  }

 private:
  int ends_[2];
  const bool made_;
};

/// Processes that are killed when the test ends, however it ends.
class Processes {
 public:
  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const pid_t child : children_) {
      if (child > 0) ::kill(child, SIGKILL), ::waitpid(child, nullptr, 0);
    }
  }

  /// Runs fn in a new process, whose exit code is what it returns. REQUIRES: the test has no other
  /// threads at this time.
  void start(const std::function<int()>& fn) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(fn());
    children_.push_back(child);
  }
  size_t count() const { return children_.size(); }
  void kill(size_t i, int signal = SIGKILL) { ::kill(children_[i], signal); }

  static constexpr int kRunning = -1000;
  /// The exit code of process i; minus the signal that ended it; kRunning after `limit`.
  int wait(size_t i, std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    for (;;) {
      int status = 0;
      if (::waitpid(children_[i], &status, WNOHANG) == children_[i]) {
        children_[i] = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      }
      if (std::chrono::steady_clock::now() >= deadline) return kRunning;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

 private:
  std::vector<pid_t> children_;
};

}  // namespace mscclc::testing
