#include "tools/lsp/serve.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "tools/lsp/server.h"
#include "tools/lsp/wire.h"

namespace mscclc::lsp {
namespace {

/// Messages that wait are no more than this; the rest waits in the pipe.
constexpr size_t kMaxQueued = kMaxMessage;

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

class Streams {
 public:
  Streams(int in, int out, ReadFile read_file)
      : in_(in),
        server_({.read_file = std::move(read_file), .settings = {}},
                [this, out](const Json& message) {
                  writable_ = writable_ && write_all(out, framed(message));
                }) {}

  int run() {
    while (!server_.exit_code() && writable_) {
      if (!ended_) read_what_is_there();
      if (server_.exit_code() || server_.step(Clock::now())) continue;
      if (ended_) break;
      server_.check_due(Clock::now());
    }
    return server_.exit_code().value_or(1);
  }

 private:
  /// Queues all that has come, so that what is cancelled is known before it begins; waits if there
  /// is nothing to do.
  void read_what_is_there() {
    bool idle = server_.queued_bytes() == 0;
    while (server_.queued_bytes() < kMaxQueued) {
      pollfd what{in_, POLLIN, 0};
      const int ready = ::poll(&what, 1, idle ? patience() : 0);
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return;
      const ssize_t count = ::read(in_, buffer_.data(), buffer_.size());
      if (count < 0 && errno == EINTR) continue;
      ended_ = count <= 0;
      if (ended_) return;
      wire_.feed({buffer_.data(), static_cast<size_t>(count)});
      if (!queue_messages()) return;
      idle = idle && server_.queued_bytes() == 0;
    }
  }

  bool queue_messages() {
    std::string message;
    for (;;) {
      switch (wire_.next(message)) {
        case Wire::Got::nothing:
          return true;
        case Wire::Got::message:
          server_.take(message);
          break;
        case Wire::Got::broken:
          server_.broken(wire_.error());
          return false;
      }
    }
  }

  /// Milliseconds until a document is to be checked; -1: none is.
  int patience() const {
    const auto due = server_.due();
    if (!due) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

  const int in_;
  bool writable_ = true, ended_ = false;
  Server server_;
  Wire wire_;
  std::array<char, 65536> buffer_;
};

}  // namespace

int serve(int in, int out, ReadFile read_file) {
  return Streams(in, out, std::move(read_file)).run();
}

}  // namespace mscclc::lsp
