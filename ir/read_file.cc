#include "ir/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mscclc {
namespace {

constexpr size_t kStep = 65536;

}  // namespace

std::optional<std::string> read_to_end(int fd) {
  std::string text;
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    if (static_cast<uint64_t>(status.st_size) > kMostFileBytes) {
      errno = EFBIG;
      return std::nullopt;
    }
    text.reserve(static_cast<size_t>(status.st_size) + 1);
  }
  size_t used = 0;
  for (;;) {
    text.resize(std::max(text.capacity(), used + kStep));
    const ssize_t n = read(fd, text.data() + used, text.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (used > kMostFileBytes) {
      errno = EFBIG;
      return std::nullopt;
    }
  }
  text.resize(used);
  return text;
}

std::optional<std::string> read_whole_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> text = read_to_end(fd);
  const int error = errno;
  close(fd);
  errno = error;
  return text;
}

std::string file_error(int error) {
  if (error != EFBIG) return std::strerror(error);
  return "it has more than " + std::to_string(kMostFileBytes >> 20) + " MiB, or does not end";
}

}  // namespace mscclc
