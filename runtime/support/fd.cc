#include "runtime/support/fd.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace mscclc {

void Fd::reset(int fd) {
  if (fd_ >= 0) {
    const int error = errno;
    ::close(fd_);  // EINTR: Linux has closed it all the same
    errno = error;
  }
  fd_ = fd;
}

QuietWrites::QuietWrites() {
  sigset_t pending;
  ::sigemptyset(&signals_);
  ::sigpending(&pending);
  for (const int signal : {SIGXFSZ, SIGPIPE}) {
    if (::sigismember(&pending, signal) == 0) ::sigaddset(&signals_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

QuietWrites::~QuietWrites() {
  const int error = errno;
  constexpr timespec kAtOnce{};
  while (::sigtimedwait(&signals_, nullptr, &kAtOnce) > 0 || errno == EINTR) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

Fd make_waker() { return Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void wake(const Fd& waker) {
  const uint64_t one = 1;
  // EAGAIN: the counter is full, so the poller is awake.
  while (::write(waker.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void drain(const Fd& waker) {
  uint64_t count = 0;
  while (::read(waker.get(), &count, sizeof count) < 0 && errno == EINTR) {
  }
}

namespace {

std::optional<ucred> peer_of(const Fd& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
      length != sizeof peer) {
    return std::nullopt;
  }
  return peer;
}

}  // namespace

std::optional<uint32_t> peer_user(const Fd& socket) {
  const auto peer = peer_of(socket);
  return peer ? std::optional<uint32_t>(peer->uid) : std::nullopt;
}

std::optional<int32_t> peer_process(const Fd& socket) {
  const auto peer = peer_of(socket);
  return peer && peer->pid > 0 ? std::optional<int32_t>(peer->pid) : std::nullopt;
}

bool same_user(const Fd& socket) { return peer_user(socket) == ::geteuid(); }

void fill_random(std::span<uint8_t> out) {
  size_t at = 0;
  while (at < out.size()) {
    const ssize_t got = ::getrandom(out.data() + at, out.size() - at, 0);
    if (got > 0) {
      at += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      std::abort();  // no system call: a secret that can be guessed is worse than no job
    }
  }
}

namespace {

bool raise_limit() {
  constexpr rlim_t kEnough = 1 << 20;  // programs go over all that there may be
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  const rlim_t wanted = std::min(limit.rlim_max, kEnough);
  if (limit.rlim_cur >= wanted) return true;
  limit.rlim_cur = wanted;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace

void raise_descriptor_limit() { [[maybe_unused]] static const bool once = raise_limit(); }

std::string error_text(int error) {
  const char* const limit = error == EFBIG    ? "; the limit is 'ulimit -f'"
                            : error == EMFILE ? "; the limit is 'ulimit -n'"
                                              : "";
  return fmt::format("{} ({}){}", std::generic_category().message(error), error, limit);
}

bool is_out_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

const char* code_of(int error, const char* otherwise) {
  return is_out_of_descriptors(error) ? "no-descriptors" : otherwise;
}

}  // namespace mscclc
