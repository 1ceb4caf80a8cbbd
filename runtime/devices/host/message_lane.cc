// Orders are structs, sent as they are in memory: both ends are processes of one machine. A put is
// followed by its bytes. The other way go numbers: of a flush whose orders have all been carried
// out, or kGone, after which the far end takes no more, as they are not needed.
#include "runtime/devices/host/message_lane.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "executor/shared_atomics.h"
#include "ir/diagnostics/first_message.h"
#include "runtime/support/deadline.h"
#include "runtime/support/fd.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/process/insist.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {
namespace {

enum class What : uint64_t { put, signal, flush };

struct Order {
  What what;
  uint64_t memory, offset;  ///< where: ExposedId, and so many bytes into it
  uint64_t value;           ///< put: bytes; signal: the count; flush: its number, from 1
};
static_assert(sizeof(Order) == 32);

constexpr uint64_t kGone = 0;
constexpr uint64_t kRoom = 64 << 10;

bool refuse(Diagnostics& diagnostics, const std::string& why) {
  diagnostics.error("lane-failed", {}, why);
  return false;
}

/// Waits until `bytes` bytes have come. False: the other end has closed.
bool receive(const Fd& socket, void* to, uint64_t bytes) {
  auto* at = static_cast<uint8_t*>(to);
  while (bytes > 0) {
    const ssize_t n = ::recv(socket.get(), at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

class MessageEnd final : public LaneEnd {
 public:
  MessageEnd(uint32_t peer, std::shared_ptr<FdServer> server, std::shared_ptr<ExposedMemory> memory,
             LaneFailed failed)
      : peer_(peer),
        server_(std::move(server)),
        memory_(std::move(memory)),
        failed_(std::move(failed)) {}

  bool start(Diagnostics& diagnostics) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return refuse(diagnostics,
                    fmt::format("no socket for the lane of rank {}: {}", peer_, error_text(errno)));
    }
    socket_.reset(ends[0]);
    const Fd near(ends[1]);
    offer_ = server_->offer(near.get(), {}, diagnostics);
    if (offer_.empty()) return false;
    thread_ = quiet_thread(
        "mscclc-lane", [this] { serve(); },
        [this] {
          insist([this] {
            failed_(
                fmt::format("the lane of rank {} has ended: there is not enough memory", peer_));
          });
          ::shutdown(socket_.get(), SHUT_RDWR);
        });
    return has_started(thread_, "the far end of a lane", diagnostics);
  }

  ~MessageEnd() override {
    if (!offer_.empty()) server_->withdraw(offer_);
    if (!thread_.joinable()) return;
    answer(kGone);
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  void serve() {
    Order order{};
    while (receive(socket_, &order, sizeof order)) {
      if (carry_out(order)) continue;
      ::shutdown(socket_.get(), SHUT_RDWR);  // the peer learns it, too
      return;
    }
  }

  /// False: no more can be taken.
  bool carry_out(const Order& order) {
    switch (order.what) {
      case What::put:
        return put(order);
      case What::signal:
        return signal(order);
      case What::flush:
        answer(order.value);
        return true;
    }
    return give_up(
        fmt::format("order {}, which does not exist", static_cast<uint64_t>(order.what)));
  }

  bool put(const Order& order) {
    const auto piece = memory_->find(order.memory, order.offset, order.value);
    if (piece.state == ExposedMemory::Piece::State::unknown) return wrong_place(order, order.value);
    for (uint64_t done = 0; done < order.value;) {
      const uint64_t n = std::min<uint64_t>(sizeof bytes_, order.value - done);
      if (!receive(socket_, bytes_, n)) return false;
      if (piece.data != nullptr) copy_words(piece.data + done, bytes_, n);
      done += n;
    }
    return true;
  }

  bool signal(const Order& order) {
    const auto piece = memory_->find(order.memory, order.offset, sizeof order.value);
    const bool aligned = reinterpret_cast<uintptr_t>(piece.data) % sizeof order.value == 0;
    if (piece.state == ExposedMemory::Piece::State::unknown || !aligned) {
      return wrong_place(order, sizeof order.value);
    }
    if (piece.data != nullptr) store_release(piece.data, order.value);
    return true;
  }

  bool wrong_place(const Order& order, uint64_t bytes) {
    return give_up(fmt::format("{} bytes at byte {} of memory {}, which it may not write", bytes,
                               order.offset, order.memory));
  }
  bool give_up(const std::string& what) {
    failed_(fmt::format("the lane of rank {} brings {}", peer_, what));
    return false;
  }

  /// If the peer is gone, or does not listen, nothing is sent.
  void answer(uint64_t number) const {
    (void)::send(socket_.get(), &number, sizeof number, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  const uint32_t peer_;
  const std::shared_ptr<FdServer> server_;
  const std::shared_ptr<ExposedMemory> memory_;
  const LaneFailed failed_;
  Fd socket_;
  alignas(uint64_t) uint8_t bytes_[64 << 10];
  std::thread thread_;
};

class MessageLane final : public Lane {
 public:
  MessageLane(Fd socket, const LanePeer& peer)
      : socket_(std::move(socket)), peer_(peer.rank), over_(peer.over) {}

  /// What a socket that can be written to takes without a wait.
  uint64_t room() override {
    if (gone_ || (over_ && over_())) return kAnyRoom;
    return mscclc::await(socket_.get(), POLLOUT, std::chrono::steady_clock::now()) ? kRoom : 0;
  }

  bool put(const RemotePlace& to, const void* from, uint64_t bytes,
           Diagnostics& diagnostics) override {
    Order order{What::put, 0, to.offset, bytes};
    return bytes == 0 || (name(to, bytes, order, diagnostics) && send(order, from, diagnostics));
  }

  bool signal(const RemotePlace& count, uint64_t value, Diagnostics& diagnostics) override {
    Order order{What::signal, 0, count.offset, value};
    return name(count, sizeof value, order, diagnostics) && send(order, nullptr, diagnostics);
  }

  /// What was sent has been read.
  bool complete(uint64_t* count, uint64_t value, Diagnostics&) override {
    store_release(count, value);
    return true;
  }

  FlushState try_flush(Diagnostics& diagnostics) override {
    if (!flushes_all_) {
      if (room() == 0) return FlushState::under_way;
      if (!send({What::flush, 0, 0, ++flushes_}, nullptr, diagnostics)) return FlushState::failed;
      flushes_all_ = true;
    }
    while (!gone_ && answered_ != flushes_) {
      if (!mscclc::await(socket_.get(), POLLIN, std::chrono::steady_clock::now())) {
        return go_on(diagnostics) ? FlushState::under_way : FlushState::failed;
      }
      if (!listen(diagnostics)) return FlushState::failed;
    }
    flushes_all_ = false;
    return FlushState::done;
  }

 private:
  bool name(const RemotePlace& place, uint64_t bytes, Order& order, Diagnostics& diagnostics) {
    const auto memory = NamedMemory::at(place, bytes);
    if (!memory) {
      return refuse(diagnostics,
                    fmt::format("{} bytes at byte {} of a region of rank {} are not for its lane",
                                bytes, place.offset, peer_));
    }
    order.memory = *memory;
    return true;
  }

  /// Waits until the socket may have become ready. False: that is no longer wanted.
  bool await(short events, Diagnostics& diagnostics) {
    while (!mscclc::await(socket_.get(), events, std::chrono::steady_clock::now() + kAskAgain)) {
      if (!go_on(diagnostics)) return false;
    }
    return true;
  }

  /// May an order still wait for the peer?
  bool go_on(Diagnostics& diagnostics) const {
    return !over_ || !over_() ||
           refuse(diagnostics,
                  fmt::format("rank {} takes no orders, and the communicator has failed", peer_));
  }

  /// Hears what the far end has said so far. False: it ended without a word.
  bool listen(Diagnostics& diagnostics) {
    uint64_t number = 0;
    const ssize_t n = ::recv(socket_.get(), &number, sizeof number, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n != sizeof number) {
      return refuse(diagnostics,
                    fmt::format("rank {} has ended, or takes no more of what is put to it", peer_));
    }
    gone_ = number == kGone;
    answered_ = number;
    return true;
  }

  /// A send has failed: good, if the far end had said that it goes.
  bool heard_goodbye(Diagnostics& diagnostics) {
    while (!gone_) {
      if (!listen(diagnostics)) return false;
    }
    return true;
  }

  bool send(const Order& order, const void* bytes, Diagnostics& diagnostics) {
    flushes_all_ = false;
    const uint64_t payload = order.what == What::put ? order.value : 0;
    const uint64_t all = sizeof order + payload;
    for (uint64_t sent = 0; sent < all && !gone_;) {
      iovec parts[2];
      size_t count = 0;
      if (sent < sizeof order) {
        auto* head = reinterpret_cast<const uint8_t*>(&order);
        parts[count++] = {const_cast<uint8_t*>(head) + sent, sizeof order - sent};
      }
      const uint64_t from = sent < sizeof order ? 0 : sent - sizeof order;
      if (payload > from) {
        auto* data = static_cast<const uint8_t*>(bytes) + from;
        parts[count++] = {const_cast<uint8_t*>(data), payload - from};
      }
      msghdr message{};
      message.msg_iov = parts;
      message.msg_iovlen = count;
      const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n >= 0) {
        sent += static_cast<uint64_t>(n);
      } else if (errno == EAGAIN) {
        if (!await(POLLOUT, diagnostics)) return false;
      } else if (errno != EINTR) {
        return heard_goodbye(diagnostics);
      }
    }
    return true;
  }

  const Fd socket_;
  const uint32_t peer_;
  const std::function<bool()> over_;
  uint64_t flushes_ = 0, answered_ = 0;
  bool flushes_all_ = false;  ///< the latest flush is under way, and nothing was ordered since
  bool gone_ = false;         ///< the far end has, in good order
};

}  // namespace

std::unique_ptr<LaneEnd> await_messages(uint32_t peer, std::shared_ptr<FdServer> server,
                                        std::shared_ptr<ExposedMemory> memory, LaneFailed failed,
                                        Diagnostics& diagnostics) {
  auto end =
      std::make_unique<MessageEnd>(peer, std::move(server), std::move(memory), std::move(failed));
  return end->start(diagnostics) ? std::move(end) : nullptr;
}

std::unique_ptr<Lane> open_messages(const LanePeer& peer, const FetchWait& wait,
                                    Diagnostics& diagnostics) {
  Diagnostics problems;
  Fd socket = fetch_fd({peer.offer.begin(), peer.offer.end()}, {}, wait, problems);
  if (socket.valid()) return std::make_unique<MessageLane>(std::move(socket), peer);
  refuse(diagnostics, fmt::format("no lane to rank {}: {}", peer.rank,
                                  first_message(problems, "no socket came")));
  return nullptr;
}

}  // namespace mscclc
