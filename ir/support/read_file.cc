#include "ir/support/read_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ir/support/precondition.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kStep = 65536;
/// How often a pipe that has no writer yet is looked at.
constexpr int kLookMs = 20;

bool does_not_block(int fd) { return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0; }

/// Waits until a pipe has a writer; a byte that was read to find out goes into
/// `begun`. False: it has none. REQUIRES: `fd` does not block.
bool await_writer(int fd, std::chrono::milliseconds patience, std::string& begun) {
  precondition([&] { return does_not_block(fd); });
  const auto deadline = Clock::now() + patience;
  pollfd polled{fd, POLLIN, 0};
  // Ready: there is something to read, or the writer has gone. A pipe that is not ready is at its
  // end, if no writer has opened it yet.
  while (poll(&polled, 1, kLookMs) <= 0) {
    char byte = 0;
    const ssize_t n = read(fd, &byte, 1);
    if (n > 0) begun.push_back(byte);
    if (n != 0) return true;
    if (Clock::now() < deadline) continue;
    errno = ETIMEDOUT;
    return false;
  }
  return true;
}

/// Appends what is left of a descriptor.
std::optional<std::string> read_rest(int fd, std::string text) {
  size_t used = text.size();
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    if (static_cast<uint64_t>(status.st_size) > kMaxFileBytes) {
      errno = EFBIG;
      return std::nullopt;
    }
    text.reserve(static_cast<size_t>(status.st_size) + 1);
  }
  for (;;) {
    text.resize(std::max(text.capacity(), used + kStep));
    const ssize_t n = read(fd, text.data() + used, text.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (used > kMaxFileBytes) {
      errno = EFBIG;
      return std::nullopt;
    }
  }
  text.resize(used);
  return text;
}

/// The text of an open file. REQUIRES: `fd` does not block; with patience it does afterwards.
std::optional<std::string> read_opened(int fd, std::optional<std::chrono::milliseconds> patience) {
  precondition([&] { return does_not_block(fd); });
  std::string begun;
  struct stat status {};
  if (fstat(fd, &status) != 0) return std::nullopt;
  if (!patience && !S_ISREG(status.st_mode)) {
    errno = S_ISDIR(status.st_mode) ? EISDIR : ESPIPE;
    return std::nullopt;
  }
  if (!patience) return read_rest(fd, {});  // still not blocking: files of /proc may
  if (S_ISFIFO(status.st_mode) && !await_writer(fd, *patience, begun)) return std::nullopt;
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) return std::nullopt;
  return read_rest(fd, std::move(begun));
}

}  // namespace

std::optional<std::string> read_to_end(int fd) { return read_rest(fd, {}); }

// Opened without blocking: open() of a named pipe waits for a writer, forever.
std::optional<std::string> read_file(const std::string& path,
                                     std::optional<std::chrono::milliseconds> patience) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> text = read_opened(fd, patience);
  const int error = errno;
  close(fd);
  errno = error;
  return text;
}

std::string file_error(int error) {
  if (error == ETIMEDOUT) return "it is a pipe with no writer";
  if (error == ESPIPE) return "it is a pipe or a device, not a file";
  if (error != EFBIG) return std::strerror(error);
  return "it has more than " + std::to_string(kMaxFileBytes >> 20) + " MiB, or does not end";
}

}  // namespace mscclc
