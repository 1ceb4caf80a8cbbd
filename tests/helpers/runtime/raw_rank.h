// For tests: one end of a bootstrap's connection, spoken byte by byte, so that it can stop anywhere
// or say what no rank says.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/bootstrap/tcp/listener.h"
#include "runtime/bootstrap/wire/handshake.h"
#include "runtime/support/address/unique_id.h"
#include "runtime/support/deadline.h"
#include "tests/helpers/runtime/longer_times.h"

namespace mscclc::testing {

/// A port that is free now, and that the system gives only to those that ask for it.
inline uint16_t free_port() {
  for (;;) {
    std::array<uint8_t, 2> random{};
    fill_random(random);
    const auto port = static_cast<uint16_t>(20000 + (random[0] << 8 | random[1]) % 12000);
    if (listen_on(Address::loopback(port)).valid()) return port;
  }
}

/// An id of this machine that is not served.
inline UniqueId spare_id() {
  UniqueId id{.address = Address::loopback(free_port())};
  fill_random(id.secret);
  return id;
}

/// A hub for two ranks, of which one that is silent for so long has died.
inline std::unique_ptr<Hub> hub_of_two(const UniqueId& id, std::chrono::milliseconds silence,
                                       Diagnostics& diagnostics) {
  return Hub::start({.addresses = {id.address},
                     .secret = id.secret,
                     .size = 2,
                     .timeout = kFarBeyond,
                     .silence = silence},
                    diagnostics);
}

class RawRank {
 public:
  /// Of a test with a hub that does not answer: far beyond what is needed, for machines under load.
  static constexpr int kPatienceMs = 120'000;

  /// Connects, waiting for the hub to listen; at most two minutes.
  explicit RawRank(const UniqueId& id) : id_(id) {
    for (int i = 0; i < 24'000 && !connection_; ++i) {
      Fd socket = begin_connect(id.address);
      pollfd polled{socket.get(), POLLOUT, 0};
      if (socket.valid() && ::poll(&polled, 1, 1000) == 1 && connect_error(socket) == 0 &&
          (id.local || local_port(socket) != id.address.port())) {
        connection_.emplace(std::move(socket), wire::kMaxFromHub);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
  }

  bool connected() const { return connection_.has_value(); }
  int fd() const { return connection_->fd(); }
  /// Sends the first `count` bytes as they are; all that can be sent.
  bool send(const wire::Bytes& bytes, size_t count = SIZE_MAX) {
    count = std::min(count, bytes.size());
    for (size_t at = 0; at < count;) {
      pollfd polled{fd(), POLLOUT, 0};
      ::poll(&polled, 1, kPatienceMs);
      const ssize_t put = ::send(fd(), bytes.data() + at, count - at, MSG_NOSIGNAL);
      if (put <= 0) return false;
      at += static_cast<size_t>(put);
    }
    return true;
  }
  /// Sends a frame, sealed if this rank is past the proofs.
  bool say(wire::Bytes frame) {
    connection_->send(std::move(frame));
    return flush();
  }
  /// The frame as it would go over the wire now. It counts as sent.
  wire::Bytes sealed(const wire::Bytes& frame) {
    wire::Bytes out;
    for (size_t at = 0; at < frame.size(); at += wire::kMaxRecord) {
      const size_t count = std::min<size_t>(wire::kMaxRecord, frame.size() - at);
      own_sealer_->seal(wire::Payload(frame).subspan(at, count), out);
    }
    return out;
  }
  /// The kind of the next frame that is not a heartbeat; nullopt: the connection has ended, or
  /// nothing came for so long.
  std::optional<wire::FrameKind> receive() {
    for (bool alive = true;;) {
      const wire::FrameReader::Next next = connection_->in().next();
      if (next == wire::FrameReader::Next::frame) {
        if (connection_->in().kind() != wire::FrameKind::heartbeat) return connection_->in().kind();
        continue;
      }
      pollfd polled{fd(), POLLIN, 0};
      if (!alive || next == wire::FrameReader::Next::bad || ::poll(&polled, 1, kPatienceMs) != 1) {
        return std::nullopt;
      }
      alive = connection_->read_some();
    }
  }
  wire::Payload payload() { return connection_->in().payload(); }
  const std::string& why() const { return connection_->why(); }
  /// The hub has ended the connection.
  bool ended() {
    while (receive()) {
    }
    pollfd polled{fd(), POLLIN, 0};
    uint8_t byte;
    return ::poll(&polled, 1, kPatienceMs) == 1 && ::recv(fd(), &byte, 1, 0) <= 0;
  }

  /// Takes the challenge; gives the hello that answers it. `to`: where the rank believes that it is
  /// connected, if not to where it is.
  wire::Bytes hello(uint32_t rank, uint32_t size, std::optional<Address> to = std::nullopt) {
    hello_ = {.rank = rank, .size = size, .process = static_cast<uint32_t>(::getpid())};
    if (receive() != wire::FrameKind::challenge) return wire::frame(hello_);
    challenge_ = *wire::read_challenge(payload());
    hello_.key = keys_.open;
    hello_.from = own_end(connection_socket()).bytes();
    hello_.to = (to ? *to : id_.address).bytes();
    said_ = wire::transcript(challenge_, hello_);
    hello_.proof = wire::rank_proof(id_.secret, said_);
    return wire::frame(hello_);
  }
  /// Takes the welcome, and seals what follows; false: it was not one.
  bool welcomed() {
    if (receive() != wire::FrameKind::welcome) return false;
    welcome_ = *wire::read_welcome(payload());
    const auto keys = wire::session_keys(id_.secret, said_, welcome_, keys_, challenge_.key);
    if (!keys || !same_digest(wire::hub_proof(id_.secret, said_, welcome_), welcome_.proof)) {
      return false;
    }
    own_sealer_.emplace(keys->to_hub);
    return connection_->seal(keys->to_hub, keys->to_rank);
  }
  /// Comes as this rank. What is sent from now on is sealed, by say(), or else by sealed() and
  /// send(): both number their records.
  bool come(uint32_t rank, uint32_t size, bool by_hand = false) {
    if (!send(hello(rank, size)) || !welcomed()) return false;
    const wire::Bytes joined = wire::frame(wire::FrameKind::joined);
    return by_hand ? send(sealed(joined)) : say(joined);
  }
  const wire::Challenge& challenge() const { return challenge_; }
  const wire::Welcome& welcome() const { return welcome_; }

 private:
  bool flush() {
    const SteadyTime deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (connection_->write_some()) {
      if (!connection_->wants_write()) return true;
      if (!await(fd(), POLLOUT, deadline)) return false;
    }
    return false;
  }
  /// A borrowed descriptor: it is not closed.
  struct Borrowed {
    Fd fd;
    ~Borrowed() { fd.release(); }
    operator const Fd&() const { return fd; }
  };
  Borrowed connection_socket() const { return Borrowed{Fd(fd())}; }

  const UniqueId id_;
  const wire::KeyPair keys_ = wire::KeyPair::make();
  std::optional<Connection> connection_;
  std::optional<wire::Sealer> own_sealer_;
  wire::Challenge challenge_;
  wire::Hello hello_;
  Digest said_{};
  wire::Welcome welcome_;
};

}  // namespace mscclc::testing
