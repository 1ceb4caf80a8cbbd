#include "tools/io/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "ir/diagnostics/printable.h"
#include "ir/support/read_file.h"
#include "tools/io/progress.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;

/// How often a pipe that has no reader yet is opened again.
constexpr std::chrono::milliseconds kLook{20};

// REQUIRES: errno of what failed.
std::string failure(const char* what, const std::string& name) {
  return fmt::format("cannot {} {}: {}{}", what, name,
                     errno == ENXIO ? "it is a pipe with no reader" : std::strerror(errno),
                     errno == EFBIG ? "; the limit is 'ulimit -f'" : "");
}

/// A path, whole: to be found it must be known.
std::string in_quotes(const std::string& path) { return quoted(path, path.size()); }

/// Text may quote files and names from outside.
void print(std::string_view text, std::FILE* to) {
  Progress::hide();
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

/// A file that may be written and to which no other name leads, so that a new file under its name
/// is the same to all processes. Names in /dev and /proc mean what is open already.
bool may_be_replaced(const std::string& path, const struct stat& st) {
  return S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid() &&
         faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0 && !path.starts_with("/dev/") &&
         !path.starts_with("/proc/");
}

/// Opens what is written in place. -1: errno says why; ENXIO: a named pipe has had no reader for so
/// long. Opened without blocking: open() of a named pipe waits for a reader, forever.
int open_in_place(const std::string& path, std::chrono::milliseconds patience) {
  constexpr int kReplace = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK;
  const auto deadline = Clock::now() + patience;
  int fd = -1;
  while ((fd = open(path.c_str(), kReplace, 0666)) < 0) {
    if (errno != ENXIO || Clock::now() >= deadline) return -1;
    std::this_thread::sleep_for(kLook);
  }
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0) return fd;
  close(fd);
  return -1;
}

/// The path without links; "" if there is none.
std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> found(realpath(path.c_str(), nullptr),
                                                          &std::free);
  return found ? found.get() : "";
}

}  // namespace

Result<std::string> read_input(const std::string& path) {
  const bool standard = path == "-";
  std::optional<std::string> text = standard ? read_to_end(STDIN_FILENO) : read_file(path);
  if (text) return *std::move(text);
  return Error{fmt::format("cannot read {}: {}", standard ? "standard input" : in_quotes(path),
                           file_error(errno))};
}

Result<std::string> read_regular_file(const std::string& path) {
  std::optional<std::string> text = read_file(path, std::nullopt);
  if (text) return *std::move(text);
  return Error{fmt::format("cannot read {}: {}", in_quotes(path), file_error(errno))};
}

Result<void> write_file(const std::string& path, std::string_view text) {
  FileWriter file(path);
  if (file.write(text) && file.finish()) return {};
  return Error{file.error()};
}

Result<void> could_write(const std::string& path) {
  if (path == "-") return {};
  const auto refuse = [&](int why) {
    return Error{fmt::format("cannot write '{}': {}", path, std::strerror(why))};
  };
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return refuse(EISDIR);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder, none)) return {};
  return refuse(std::filesystem::exists(folder, none) ? ENOTDIR : ENOENT);
}

Result<void> needs_file(const std::string& what, const std::string& path) {
  if (path != "-") return {};
  return Error{what + " needs a file: what the command prints is on standard output"};
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat of_a, of_b;
  return a != "-" && b != "-" && stat(a.c_str(), &of_a) == 0 && stat(b.c_str(), &of_b) == 0 &&
         S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  struct stat st;
  if (!beside_.empty()) {
    unlink(beside_.c_str());
  } else if (fstat(fd_, &st) == 0 && S_ISREG(st.st_mode)) {
    unlink(path_.c_str());
  }
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
  if (path_ == "-") {
    if (isatty(STDOUT_FILENO) != 0) held_ = printable(held_);
    return write_all(STDOUT_FILENO, held_) || fail();
  }
  if (!begin()) return false;
  if (close(std::exchange(fd_, -1)) == 0 &&
      (beside_.empty() || rename(beside_.c_str(), target_.c_str()) == 0)) {
    return true;
  }
  fail();
  if (!beside_.empty()) unlink(beside_.c_str());
  return false;
}

/// Opens what is written, if it is not open yet, and writes what has been held back.
bool FileWriter::begin() {
  if (fd_ >= 0) return true;
  open_beside();
  if (fd_ < 0) fd_ = open_in_place(path_, patience_);
  return (fd_ >= 0 || fail()) && pass_on(std::exchange(held_, {}));
}

bool FileWriter::pass_on(std::string_view text) { return write_all(fd_, text) || fail(); }

/// Opens a file beside the path that can take its place; fd_ stays -1 if there can be none.
void FileWriter::open_beside() {
  struct stat st;
  const bool replaces = lstat(path_.c_str(), &st) == 0;
  target_ = replaces ? real_path(path_) : path_;
  if (replaces && (stat(path_.c_str(), &st) != 0 || !may_be_replaced(path_, st))) return;
  beside_ = fmt::format("{}.{}.part", target_, getpid());
  fd_ = open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    beside_.clear();
  } else if (replaces &&
             (fchown(fd_, -1, st.st_gid) != 0 || fchmod(fd_, st.st_mode & 07777) != 0)) {
    unlink(std::exchange(beside_, {}).c_str());
    close(std::exchange(fd_, -1));
  }
}

/// REQUIRES: errno of what failed.
bool FileWriter::fail() {
  error_ = failure("write", path_ == "-" ? "standard output" : in_quotes(path_));
  return false;
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
