#include "runtime/support/observe/log_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace mscclc {
namespace {

bool is_trusted_link(const std::string& name) {
  struct stat status {};
  return ::lstat(name.c_str(), &status) == 0 && S_ISLNK(status.st_mode) &&
         (status.st_uid == ::geteuid() || status.st_uid == 0);
}

}  // namespace

Fd open_log(const std::string& name, int flags) {
  constexpr int kAlways = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK;
  const int links = is_trusted_link(name) ? 0 : O_NOFOLLOW;
  return Fd(::open(name.c_str(), kAlways | links | flags, 0600));
}

std::string describe_log_error(int error) {
  if (error == ENXIO) return "it is a pipe with no reader";
  if (error == ELOOP) return "it is a link that another user has made";
  return error_text(error);
}

}  // namespace mscclc
