#include "runtime/net/socket_end.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/net/broken.h"
#include "runtime/net/order_reader.h"

namespace mscclc::net {
namespace {

/// After so many reads other sockets have their turn.
constexpr int kReadsInARow = 8;

/// Sends a few bytes if there is room for them.
bool send_now(const Fd& socket, const void* bytes, size_t count) {
  return ::send(socket.get(), bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(count);
}

/// All but its construction and end runs on the reactor's thread.
class SocketEnd final : public LaneEnd, private SocketNet::Taker {
 public:
  SocketEnd(uint32_t peer, std::shared_ptr<SocketNet> net, std::shared_ptr<ExposedMemory> memory,
            LaneFailed failed, std::unique_ptr<Landing> landing)
      : peer_(peer), net_(std::move(net)), failed_(std::move(failed)) {
    lane_.memory = std::move(memory);
    lane_.landing = std::move(landing);
    fill_random(key_);
    const auto held = net_->reactor().hold();
    number_ = net_->announce(*this);
    offer_ = encode(LaneOffer{net_->address(), number_, key_});
  }

  ~SocketEnd() override {
    const auto held = net_->reactor().hold();
    net_->withdraw(number_);
    for (auto& connection : connections_) {
      if (connection == nullptr || !connection->socket.valid()) continue;
      (void)send_now(connection->socket, &kGone, sizeof kGone);
      let_go(*connection);
    }
  }

 private:
  struct Connection {
    Connection(IncomingLane& lane, uint32_t index) : reader(lane, index) {}
    Fd socket;  ///< invalid: done with
    Reactor::Token token = 0;
    OrderReader reader;
    bool waits = false;  ///< for other connections: it is not read
  };

  const Key& key() const override { return key_; }

  bool take(Fd& socket, const Hello& hello, const Welcome& reply) override {
    if (broken_ || (!connections_.empty() && connections_.size() != hello.connections)) {
      return false;
    }
    if (connections_.empty()) {
      connections_.resize(hello.connections);
      lane_.done.resize(hello.connections);
    }
    auto& slot = connections_[hello.connection];
    const Bytes welcome = encode(reply);
    if (slot != nullptr || !send_now(socket, welcome.data(), welcome.size())) return false;
    auto made = std::make_unique<Connection>(lane_, hello.connection);
    made->token = net_->reactor().add(
        socket, EPOLLIN, [this, c = made.get()](uint32_t events) { read(*c, events); });
    if (made->token == 0) return false;
    made->socket = std::move(socket);
    slot = std::move(made);
    return true;
  }

  /// One whose connections have all come needs no more.
  void cannot_take(const std::string& why) override {
    const bool all_here =
        !connections_.empty() &&
        std::find(connections_.begin(), connections_.end(), nullptr) == connections_.end();
    if (!all_here && !broken_) {
      end(fmt::format("the connections of rank {}'s lane cannot be taken: {}", peer_, why));
    }
  }

  void read(Connection& connection, uint32_t events) {
    if (connection.waits) {  // what still comes there is not read; so it can only have broken
      if ((events & (EPOLLERR | EPOLLHUP)) != 0) broke(connection);
      return;
    }
    for (int i = 0; i < kReadsInARow && connection.socket.valid() && !connection.waits; ++i) {
      const auto room = connection.reader.room();
      const ssize_t n = ::recv(connection.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return end_break(n == 0 ? 0 : errno);
      connection.reader.received(static_cast<size_t>(n));
      if (!go_on(connection)) return;
      wake_waiting();
    }
  }

  /// False: the lane has ended.
  bool go_on(Connection& connection) {
    switch (connection.reader.go_on()) {
      case OrderReader::State::more:
        set_waits(connection, false);
        return true;
      case OrderReader::State::waits:
        set_waits(connection, true);
        return true;
      case OrderReader::State::bye:
        connection.waits = false;
        net_->reactor().remove(connection.socket, connection.token);
        connection.socket.reset();
        return true;
      case OrderReader::State::bad:
        break;
    }
    end(fmt::format("the lane of rank {} brings {}", peer_, connection.reader.why()));
    return false;
  }

  void set_waits(Connection& connection, bool waits) {
    if (connection.waits != waits) {
      net_->reactor().change(connection.socket, connection.token, waits ? 0u : EPOLLIN);
    }
    connection.waits = waits;
  }

  /// Connections that wait for others, until none of them gets on any more.
  void wake_waiting() {
    for (bool moved = true; moved && !broken_;) {
      moved = false;
      for (auto& connection : connections_) {
        if (broken_ || connection == nullptr || !connection->waits) continue;
        const std::vector<uint64_t> before = lane_.done;
        if (!go_on(*connection)) return;
        moved |= before != lane_.done;
      }
    }
  }

  void broke(const Connection& connection) {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(connection.socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    end_break(error);
  }
  void end_break(int error) {
    end(fmt::format("the lane of rank {} has ended: {}", peer_,
                    broken_text(error, net_->options().dead)));
  }

  /// No more can be taken: the rank, and the peer if it still listens, learn why.
  void end(const std::string& why) {
    broken_ = true;
    uint8_t refusal[sizeof kRefused + kRefusalBytes] = {};
    std::memcpy(refusal, &kRefused, sizeof kRefused);
    std::memcpy(refusal + sizeof kRefused, why.data(), std::min(why.size(), kRefusalBytes));
    for (auto& connection : connections_) {
      if (connection == nullptr || !connection->socket.valid()) continue;
      (void)send_now(connection->socket, refusal, sizeof refusal);
      let_go(*connection);
    }
    failed_(why);
  }

  void let_go(Connection& connection) {
    net_->reactor().remove(connection.socket, connection.token);
    net_->close_later(std::move(connection.socket));
  }

  const uint32_t peer_;
  const std::shared_ptr<SocketNet> net_;
  const LaneFailed failed_;
  IncomingLane lane_{{}, [this](uint32_t connection, uint64_t number) {
                       return send_now(connections_[connection]->socket, &number, sizeof number);
                     }};
  Key key_{};
  uint64_t number_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;  ///< nullptr: has not come yet
  bool broken_ = false;
};

}  // namespace

std::unique_ptr<LaneEnd> await_socket_lane(uint32_t peer, std::shared_ptr<SocketNet> net,
                                           std::shared_ptr<ExposedMemory> memory, LaneFailed failed,
                                           std::unique_ptr<Landing> landing) {
  return std::make_unique<SocketEnd>(peer, std::move(net), std::move(memory), std::move(failed),
                                     std::move(landing));
}

}  // namespace mscclc::net
