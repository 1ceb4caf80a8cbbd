// One connection of a lane, as its sender sees it: a queue of orders, and the answers to them.
// Never waits.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/network/lane_wire.h"
#include "runtime/support/fd.h"

namespace mscclc::net {

/// The beginning of what a sender is to send, as parts of one message.
class Batch {
 public:
  static constexpr size_t kMaxOrders = 16;

  /// `skip`: bytes that have been sent before.
  explicit Batch(uint64_t skip) : skip_(skip) {}
  void add(const void* from, uint64_t bytes);
  /// Bytes that there was room for; -1: errno says why.
  [[nodiscard]] ssize_t send(const Fd& socket);

 private:
  uint64_t skip_;
  iovec parts_[3 * kMaxOrders];
  size_t count_ = 0;
};

class Sender {
 public:
  /// Of a lane with so many connections.
  Sender(Fd socket, size_t connections) : known_(connections), socket_(std::move(socket)) {}

  const Fd& socket() const { return socket_; }
  /// `from`: of a put; must not change until it is sent.
  void push(const Order& order, const uint8_t* from = nullptr);
  /// Orders pushed so far; of those, the ones whose bytes have all been read.
  uint64_t pushed() const { return pushed_; }
  uint64_t sent() const { return pushed_ - queue_.size(); }
  bool wants_write() const { return !queue_.empty(); }
  /// Bytes of all puts in the queue.
  uint64_t bytes() const { return bytes_; }
  /// Parts of long puts are among them.
  bool has_long() const { return parts_ > 0; }
  /// Sends what there is room for, but at most about a MiB. False: the connection broke; errno says
  /// why.
  [[nodiscard]] bool send_some();
  /// The same in two steps: the first of the queue, which a thread may send while others push, and
  /// what has come of that.
  Batch batch() const;
  void take_sent(uint64_t bytes);

  struct Answer {
    uint64_t number = 0;
    std::string refusal;  ///< with kRefused
  };
  /// The next answer that has come whole. nullopt: none; ended() says whether there will be more.
  [[nodiscard]] std::optional<Answer> next_answer();
  /// The connection has ended.
  bool ended() const { return ended_; }
  int error() const { return error_; }  ///< of the system; 0: the other end has closed it
  /// No more is sent: what is queued is dropped.
  void close_writing();

  /// How many orders of each connection this one is to wait for.
  std::vector<uint64_t>& known() { return known_; }

 private:
  struct Queued {
    Order order;
    const uint8_t* from;
    bool is_part() const { return order.what == Order::part; }
    uint64_t bytes() const { return from == nullptr ? 0 : order.value; }
    uint64_t wire_bytes() const { return sizeof order + bytes() + Order::padding(bytes()); }
  };
  std::vector<uint64_t> known_;
  Fd socket_;
  std::deque<Queued> queue_;
  uint64_t pushed_ = 0, bytes_ = 0, parts_ = 0;
  uint64_t begun_ = 0;  ///< bytes of the first of the queue that have been sent
  Bytes answers_;       ///< what has come of the next one
  bool ended_ = false;
  int error_ = 0;
};

}  // namespace mscclc::net
