// For tests: one end of a bootstrap's connection, spoken byte by byte, so that it can stop anywhere
// or say what no rank says.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>

#include "runtime/bootstrap/connection.h"
#include "runtime/bootstrap/listener.h"
#include "runtime/bootstrap/unique_id.h"

namespace mscclc::testing {

/// An id of this machine that nobody serves.
inline UniqueId spare_id() {
  const Fd listener = listen_on(Address::loopback(0));
  UniqueId id{.address = Address::loopback(local_port(listener))};
  fill_random(id.secret);
  return id;
}

class RawRank {
 public:
  /// Connects, waiting for the hub to listen; at most ten seconds.
  explicit RawRank(const UniqueId& id) : id_(id) {
    for (int i = 0; i < 2000 && !socket_.valid(); ++i) {
      socket_ = begin_connect(id.address);
      pollfd polled{socket_.get(), POLLOUT, 0};
      if (socket_.valid() && ::poll(&polled, 1, 1000) == 1 && connect_error(socket_) == 0 &&
          local_port(socket_) != id.address.port()) {
        return;
      }
      socket_.reset();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  bool connected() const { return socket_.valid(); }
  int fd() const { return socket_.get(); }
  /// Sends the first `count` bytes of a frame; all that can be sent.
  bool send(const wire::Bytes& bytes, size_t count = SIZE_MAX) {
    count = std::min(count, bytes.size());
    for (size_t at = 0; at < count;) {
      pollfd polled{socket_.get(), POLLOUT, 0};
      ::poll(&polled, 1, 5000);
      const ssize_t put = ::send(socket_.get(), bytes.data() + at, count - at, MSG_NOSIGNAL);
      if (put <= 0) return false;
      at += static_cast<size_t>(put);
    }
    return true;
  }
  /// The kind of the next frame that is not a heartbeat; nullopt: the connection has ended, or
  /// nothing came for five seconds.
  std::optional<wire::FrameKind> receive() {
    for (;;) {
      if (in_.next() == wire::FrameReader::Next::frame) {
        if (in_.kind() != wire::FrameKind::heartbeat) return in_.kind();
        continue;
      }
      pollfd polled{socket_.get(), POLLIN, 0};
      if (::poll(&polled, 1, 5000) != 1) return std::nullopt;
      uint8_t buffer[4096];
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got <= 0) return std::nullopt;
      in_.feed({buffer, static_cast<size_t>(got)});
    }
  }
  wire::Payload payload() const { return in_.payload(); }
  /// The hub has ended the connection, within five seconds.
  bool ended() {
    while (receive()) {
    }
    pollfd polled{socket_.get(), POLLIN, 0};
    uint8_t byte;
    return ::poll(&polled, 1, 5000) == 1 && ::recv(socket_.get(), &byte, 1, 0) <= 0;
  }

  /// Takes the challenge; gives the hello that answers it.
  wire::Bytes hello(uint32_t rank, uint32_t size) {
    wire::Hello hello{.rank = rank, .size = size, .process = static_cast<uint32_t>(::getpid())};
    if (receive() == wire::FrameKind::challenge) {
      hello.proof =
          wire::proof(id_.secret, wire::Side::rank, wire::read_challenge(payload())->nonce, hello);
    }
    return wire::frame(hello);
  }

 private:
  const UniqueId id_;
  Fd socket_;
  wire::FrameReader in_{wire::kMostFromHub};
};

}  // namespace mscclc::testing
