#include "runtime/support/observe/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace mscclc {

bool write_fully(const Fd& file, std::string_view text) {
  const QuietWrites quiet;
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool write_new_file(const std::string& name, std::string_view text) {
  const Fd file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return false;
  if (write_fully(file, text)) return true;
  const int error = errno;
  ::unlink(name.c_str());
  errno = error;
  return false;
}

}  // namespace mscclc
