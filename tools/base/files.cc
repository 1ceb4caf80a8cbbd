#include "tools/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "ir/base/read_file.h"
#include "ir/diagnostics/printable.h"

namespace mscclc {
namespace {

constexpr int kReplace = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;

// REQUIRES: errno of what failed.
std::string failure(const char* what, const std::string& name) {
  return fmt::format("cannot {} {}: {}{}", what, name, std::strerror(errno),
                     errno == EFBIG ? "; the limit is 'ulimit -f'" : "");
}

/// A path, whole: to be found it must be known.
std::string in_quotes(const std::string& path) { return quoted(path, path.size()); }

/// Text may quote files and names from outside.
void print(std::string_view text, std::FILE* to) {
  const std::string shown = printable(text);
  std::fwrite(shown.data(), 1, shown.size(), to);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

std::optional<std::string> read_input(const std::string& path, std::string& error) {
  const bool standard = path == "-";
  std::optional<std::string> text = standard ? read_to_end(STDIN_FILENO) : read_file(path);
  if (!text) {
    error = fmt::format("cannot read {}: {}", standard ? "standard input" : in_quotes(path),
                        file_error(errno));
  }
  return text;
}

std::optional<std::string> read_regular_file(const std::string& path, std::string& error) {
  std::optional<std::string> text = read_file(path, std::nullopt);
  if (!text) error = fmt::format("cannot read {}: {}", in_quotes(path), file_error(errno));
  return text;
}

bool write_file(const std::string& path, std::string_view text, std::string& error) {
  const bool standard = path == "-";
  const int fd = standard ? 1 : open(path.c_str(), kReplace, 0666);
  bool fine = fd >= 0 && write_all(fd, text);
  if (!fine) error = failure("write", standard ? "standard output" : in_quotes(path));
  if (!standard && fd >= 0 && close(fd) != 0 && fine) {
    fine = false;
    error = failure("write", in_quotes(path));
  }
  return fine;
}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  struct stat st;
  if (fstat(fd_, &st) == 0 && S_ISREG(st.st_mode)) unlink(path_.c_str());
  close(fd_);
}

bool FileWriter::write(std::string_view text) {
  if (!error_.empty()) return false;
  if (path_ == "-" || (fd_ < 0 && held_.size() + text.size() <= kHeld)) {
    held_ += text;
    return true;
  }
  return begin() && pass_on(text);
}

bool FileWriter::finish() {
  if (!error_.empty()) return false;
  if (path_ == "-") return write_file(path_, held_, error_);
  if (!begin()) return false;
  if (close(std::exchange(fd_, -1)) != 0) error_ = failure("write", in_quotes(path_));
  return error_.empty();
}

/// Opens the file, if it is not open yet, and writes what has been held back.
bool FileWriter::begin() {
  if (fd_ >= 0) return true;
  fd_ = open(path_.c_str(), kReplace, 0666);
  if (fd_ < 0) error_ = failure("write", in_quotes(path_));
  return fd_ >= 0 && pass_on(std::exchange(held_, {}));
}

bool FileWriter::pass_on(std::string_view text) {
  if (!write_all(fd_, text)) error_ = failure("write", in_quotes(path_));
  return error_.empty();
}

void put(std::string_view text) { print(text, stdout); }

void put_error(std::string_view text) { print(text, stderr); }

bool flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  put_error("mscclc: " + failure("write", "standard output") + "\n");
  return false;
}

void survive_large_writes() { std::signal(SIGXFSZ, SIG_IGN); }

void protect_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // Opened for the wrong direction, so that using it still fails and is reported.
    const int got = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    if (got >= 0 && got != fd) {
      dup2(got, fd);
      close(got);
    }
  }
}

}  // namespace mscclc
