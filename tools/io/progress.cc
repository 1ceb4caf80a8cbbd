#include "tools/io/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "ir/diagnostics/printable.h"
#include "runtime/support/process/per_process.h"

namespace mscclc {
namespace {

/// The line at the end of the terminal, if there is one. The terminal is of the process, and put()
/// may be called by anything that prints.
struct Shown {
  std::mutex mutex;
  Progress* line = nullptr;
};
Shown& shown() { return process_wide<Shown>(); }

/// "8 s", "3 min", "2 h".
std::string time_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", std::ceil(seconds));
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

size_t width_of(int fd) {
  winsize size{};
  const bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
  return known ? size.ws_col - 1u : 79;
}

bool is_terminal(int fd) {
  const char* kind = std::getenv("TERM");
  return isatty(fd) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

void write_line(int fd, const std::string& text) {
  // It is no loss if that fails.
  [[maybe_unused]] const ssize_t written = write(fd, text.data(), text.size());
}

}  // namespace

std::string progress_text(const std::string& what, const std::string& now, uint64_t begun,
                          uint64_t total, std::chrono::duration<double> taken, size_t most) {
  std::string text = what + ": ";
  if (total > 1) text += fmt::format("{} of {}, ", begun, total);
  text += fmt::format("{} so far", time_text(taken.count()));
  const uint64_t done = begun == 0 ? 0 : begun - 1;
  if (done > 0 && total > done) {
    const double each = taken.count() / static_cast<double>(done);
    text += fmt::format(", about {} left", time_text(each * static_cast<double>(total - done)));
  }
  if (!now.empty()) text += ": " + printable_line(now);
  // Of characters, not bytes: what follows the last one that has room is cut off.
  size_t at = 0;
  for (size_t characters = 0; at < text.size(); ++characters) {
    if (characters == most) return text.substr(0, at);
    at += first_character(std::string_view(text).substr(at)).bytes;
  }
  return text;
}

Progress::Progress(std::string what, uint64_t total, int fd, std::chrono::milliseconds first)
    : what_(std::move(what)), total_(total), fd_(fd), first_(first) {
  if (!is_terminal(fd)) return;
  const std::lock_guard lock(shown().mutex);
  if (shown().line != nullptr) return;  // the work that this is a part of has its line
  try {
    thread_ = std::thread([this] { show_again_and_again(); });
    shown().line = this;
  } catch (const std::system_error&) {
    // Then the work goes on without.
  }
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(shown().mutex);
    shown().line = nullptr;
  }
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
  erase();
}

void Progress::next(const std::string& name) {
  const std::lock_guard lock(mutex_);
  ++begun_pieces_;
  now_ = name;
}

void Progress::hide() {
  const std::lock_guard lock(shown().mutex);
  if (shown().line == nullptr) return;
  const std::lock_guard own(shown().line->mutex_);
  shown().line->erase();
}

void Progress::show_again_and_again() {
  std::unique_lock lock(mutex_);
  auto wait = first_;
  while (!ended_.wait_for(lock, wait, [this] { return over_; })) {
    show();
    wait = std::min(kEach, first_);
  }
}

/// REQUIRES: the mutex is held.
void Progress::show() {
  write_line(fd_, "\r" +
                      progress_text(what_, now_, begun_pieces_, total_, Clock::now() - begun_,
                                    width_of(fd_)) +
                      "\x1b[K");
  shown_ = true;
}

void Progress::erase() {
  if (std::exchange(shown_, false)) write_line(fd_, "\r\x1b[K");
}

}  // namespace mscclc
