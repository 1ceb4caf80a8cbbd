#include "runtime/network/sockets/socket_end.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "runtime/network/order_reader.h"
#include "runtime/network/sockets/socket_errors.h"
#include "runtime/network/threads/copy_workers.h"
#include "runtime/support/process/insist.h"

namespace mscclc::net {
namespace {

/// The rest of a long put that is not worth handing over.
constexpr uint64_t kLeastRest = 8 << 10;
/// After so many reads other sockets have their turn.
constexpr int kReadsInARow = 8;

/// Sends a few bytes if there is room for them.
bool send_now(const Fd& socket, const void* bytes, size_t count) {
  return ::send(socket.get(), bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(count);
}

ssize_t receive(const Fd& socket, std::span<uint8_t> room) {
  return ::recv(socket.get(), room.data(), room.size(), MSG_DONTWAIT);
}

/// To take bytes away makes the system acknowledge them at once, which takes longer than to copy
/// them. So short orders are looked at, carried out, and then dropped.
constexpr size_t kLook = 4 << 10;
ssize_t look(const Fd& socket, std::span<uint8_t> room) {
  return ::recv(socket.get(), room.data(), std::min(kLook, room.size()), MSG_DONTWAIT | MSG_PEEK);
}
/// False: they are not there any more.
bool drop(const Fd& socket, ssize_t bytes) {
  uint8_t dropped[kLook];
  return ::recv(socket.get(), dropped, static_cast<size_t>(bytes), MSG_DONTWAIT) == bytes;
}

/// All but its construction and end runs on the reactor's thread.
class SocketEnd final : public LaneEnd, private SocketNet::Taker {
 public:
  SocketEnd(uint32_t peer, std::shared_ptr<SocketNet> net, std::shared_ptr<ExposedMemory> memory,
            LaneFailed failed, std::unique_ptr<Landing> landing, LaneNoted noted)
      : peer_(peer),
        net_(std::move(net)),
        failed_(std::move(failed)),
        looks_first_(net_->options().awake.count() > 0) {
    lane_.memory = std::move(memory);
    lane_.landing = std::move(landing);
    lane_.noted = std::move(noted);
    lane_.apart = net_->workers() != nullptr;
    fill_random(key_);
    const auto held = net_->reactor().hold();
    number_ = net_->announce(*this);
    offer_ = encode(LaneOffer{net_->address(), number_, key_});
  }

  ~SocketEnd() override {
    const auto held = await_workers();
    net_->withdraw(number_);
    for (auto& connection : connections_) {
      if (connection == nullptr || !connection->socket.valid()) continue;
      (void)send_now(connection->socket, &kGone, sizeof kGone);
      let_go(*connection);
    }
  }

 private:
  struct Connection {
    Connection(IncomingLane& lane, uint32_t number) : index(number), reader(lane, number) {}
    const uint32_t index;
    Fd socket;  ///< invalid: done with
    Reactor::Token token = 0;
    OrderReader reader;
    bool waits = false;    ///< for other connections: it is not read
    bool carried = false;  ///< a worker reads it, and nothing else

    /// On a worker's thread, without the reactor's hold: receives what there is of the put under
    /// way. 0: orders can be carried out; else what recv() has come to: EAGAIN where nothing has
    /// come for long, or something waits for the worker, EPIPE at the stream's end.
    int carry(const CopyWorkers& workers);
  };

  const Key& key() const override { return key_; }

  bool take(Fd& socket, const Hello& hello, const Welcome& reply) override {
    if (broken_ || (!connections_.empty() && connections_.size() != hello.connections)) {
      return false;
    }
    if (connections_.empty()) {
      connections_.resize(hello.connections);
      lane_.connections.resize(hello.connections);
    }
    auto& slot = connections_[hello.connection];
    const Bytes welcome = encode(reply);
    if (slot != nullptr || !send_now(socket, welcome.data(), welcome.size())) return false;
    auto made = std::make_unique<Connection>(lane_, hello.connection);
    made->token = net_->reactor().add(
        socket, EPOLLIN, [this, c = made.get()](uint32_t events) { read(*c, events); },
        [this] { end_without_memory(); });
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
    if (connection.carried) return;
    if (connection.waits) {  // what still comes there is not read; so it can only have broken
      if ((events & (EPOLLERR | EPOLLHUP)) != 0) broke(connection);
      return;
    }
    for (int i = 0; i < kReadsInARow && connection.socket.valid() && !connection.waits; ++i) {
      if (hand_over(connection)) return;
      const auto room = connection.reader.room();
      bool looked = looks_first_ && connection.reader.coming() == 0;
      ssize_t n = looked ? look(connection.socket, room) : receive(connection.socket, room);
      if (looked && static_cast<size_t>(n) == std::min(kLook, room.size())) {  // more has come
        looked = false;
        n = receive(connection.socket, room);
      }
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return end_break(n == 0 ? 0 : errno);
      connection.reader.received(static_cast<size_t>(n));
      if (!go_on(connection)) return;
      if (looked && connection.socket.valid() && !drop(connection.socket, n)) {
        return end_break(errno);
      }
      wake_waiting();
      if (looked || static_cast<size_t>(n) < room.size()) return;  // no more has come
    }
  }

  bool hand_over(Connection& connection) {
    const bool few = connection.reader.coming_of_long() < kLeastRest;
    if (net_->workers() == nullptr || few) return false;
    net_->reactor().change(connection.socket, connection.token, 0);
    give_to_worker(connection);
    return true;
  }
  void give_to_worker(Connection& connection) {
    net_->workers()->give([this, &connection] {
      try {
        carry(connection);
      } catch (const std::bad_alloc&) {
        insist([&] { let_go_without_memory(connection); });
      }
    });
    connection.carried = true;  // now that it is given
  }
  /// On a worker's thread, which has carried the connection.
  void let_go_without_memory(Connection& connection) {
    const auto held = net_->reactor().take_turn();
    if (!broken_ && !ending_) end_without_memory();
    if (broken_ && !ending_ && connection.socket.valid()) let_go(connection);
    connection.carried = false;  // last: until then this stays
  }

  /// On a worker's thread: reads the connection until nothing comes, or its turn is over.
  void carry(Connection& connection) {
    const CopyWorkers& workers = *net_->workers();
    const auto begun = CopyWorkers::Clock::now();
    for (bool more = true; more;) {
      const int error = connection.carry(workers);
      const auto held = net_->reactor().take_turn();
      connection.carried = false;
      try {
        more = take_carried(connection, error, begun);
      } catch (const std::bad_alloc&) {
        connection.carried = true;  // this stays until the lack has been dealt with
        throw;
      }
    }
  }

  /// Orders of what a worker has received, until `error`. True: it receives more.
  bool take_carried(Connection& connection, int error, CopyWorkers::Clock::time_point begun) {
    if (ending_) return false;
    if (broken_) return let_go(connection), false;
    if (error != 0 && error != EAGAIN) return end_break(error == EPIPE ? 0 : error), false;
    if (!go_on(connection)) return false;
    wake_waiting();
    if (broken_ || !connection.socket.valid()) return false;
    if (connection.waits || error == EAGAIN) {
      net_->reactor().change(connection.socket, connection.token, connection.waits ? 0u : EPOLLIN);
      return false;
    }
    const bool over = CopyWorkers::Clock::now() - begun > CopyWorkers::kTurn;
    if (net_->workers()->are_wanted() && over) return give_to_worker(connection), false;
    return connection.carried = true;
  }

  [[nodiscard]] std::unique_lock<std::mutex> await_workers() {
    const auto carried = [](const auto& c) { return c != nullptr && c->carried; };
    for (;;) {
      auto held = net_->reactor().hold();
      ending_ = true;
      if (std::none_of(connections_.begin(), connections_.end(), carried)) return held;
      held.unlock();
      std::this_thread::yield();
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
        const uint64_t before = lane_.connections[connection->index].done;
        if (!go_on(*connection)) return;
        moved |= before != lane_.connections[connection->index].done;
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
                    connection_error_text(error, net_->options().dead)));
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
      if (!connection->carried) let_go(*connection);  // else the hand does
    }
    failed_(why);
  }

  /// An order may be half carried out: nothing more can be taken.
  void end_without_memory() {
    end(fmt::format("the lane of rank {} has ended: there is not enough memory here", peer_));
  }

  void let_go(Connection& connection) {
    net_->reactor().remove(connection.socket, connection.token);
    net_->close_later(std::move(connection.socket));
  }

  const uint32_t peer_;
  const std::shared_ptr<SocketNet> net_;
  const LaneFailed failed_;
  const bool looks_first_;
  IncomingLane lane_{{}, [this](uint32_t connection, uint64_t number) {
                       return send_now(connections_[connection]->socket, &number, sizeof number);
                     }};
  Key key_{};
  uint64_t number_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;  ///< nullptr: has not come yet
  bool broken_ = false, ending_ = false;
};

int SocketEnd::Connection::carry(const CopyWorkers& workers) {
  auto moved = CopyWorkers::Clock::now();
  for (;;) {
    const auto room = reader.room();
    const ssize_t n = ::recv(socket.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (n == 0) return EPIPE;
    if (n > 0) {
      reader.received(static_cast<size_t>(n));
      if (reader.coming() > 0) reader.take();
      if (reader.coming() == 0) return reader.land(), 0;
      moved = CopyWorkers::Clock::now();
    } else if (errno == EAGAIN) {
      if (workers.are_wanted() || CopyWorkers::Clock::now() - moved > CopyWorkers::kPatience)
        return EAGAIN;
      std::this_thread::yield();
    } else if (errno != EINTR) {
      return errno;
    }
  }
}

}  // namespace

std::unique_ptr<LaneEnd> await_socket_lane(uint32_t peer, std::shared_ptr<SocketNet> net,
                                           std::shared_ptr<ExposedMemory> memory, LaneFailed failed,
                                           std::unique_ptr<Landing> landing, LaneNoted noted) {
  return std::make_unique<SocketEnd>(peer, std::move(net), std::move(memory), std::move(failed),
                                     std::move(landing), std::move(noted));
}

}  // namespace mscclc::net
