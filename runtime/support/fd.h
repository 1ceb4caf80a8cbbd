// A file descriptor that closes itself, and the system calls on descriptors that several parts of
// the runtime need. All descriptors of the runtime are closed on exec.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace mscclc {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  /// Closes what it held. errno stays as it was.
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// While one lives, a write of this thread that cannot be is an error of the call and no signal:
/// EFBIG for SIGXFSZ ('ulimit -f'; truncations too), EPIPE for SIGPIPE. What the application does
/// with these signals stays as it was.
class QuietWrites {
 public:
  QuietWrites();
  /// errno stays as it was.
  ~QuietWrites();
  QuietWrites(const QuietWrites&) = delete;
  QuietWrites& operator=(const QuietWrites&) = delete;

 private:
  sigset_t signals_{}, before_{};  ///< those two, except for what was pending already
};

/// A counter that wakes what polls it (eventfd, does not block). Invalid: errno says why.
[[nodiscard]] Fd make_waker();
void wake(const Fd& waker);
void drain(const Fd& waker);

/// The user that the process at the other end of a unix socket ran as when it connected, or began
/// to listen; nullopt: the system does not say.
[[nodiscard]] std::optional<uint32_t> peer_user(const Fd& socket);
/// The process that connected, or began to listen, there; nullopt: this one does not see it.
[[nodiscard]] std::optional<int32_t> peer_process(const Fd& socket);
/// That is this process's user.
[[nodiscard]] bool same_user(const Fd& socket);

/// Fills `out` from the system's generator. It waits only while a machine boots.
void fill_random(std::span<uint8_t> out);

/// Raises the soft limit on descriptors to the hard one, or a million, as NCCL does: a job of many
/// communicators needs more than the usual 1024. The first call of a process does so, others
/// nothing.
void raise_descriptor_limit();

/// "Connection refused (111)"; where a limit is the cause, which it is.
std::string error_text(int error);
/// Whether a system call failed because this process, or the machine, has no descriptors left.
bool is_out_of_descriptors(int error);
/// A diagnostic's code for a system call that failed: no-descriptors, or `otherwise`.
const char* code_of(int error, const char* otherwise);

}  // namespace mscclc
