// How orders become messages of the system: what has gathered goes in one.
#include "runtime/network/sockets/sender.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <numeric>

namespace mscclc::net {
namespace {

/// Each message that is sent is one that comes.
struct Pair {
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    near.reset(ends[0]);
    far.reset(ends[1]);
  }
  /// The next message; empty: there is none.
  Bytes next() const {
    Bytes bytes(1 << 16);
    const ssize_t n = ::recv(far.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return bytes;
  }
  Fd near, far;
};

Bytes counted(size_t count) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

/// A put of 100 bytes, a fence and a signal.
void push_three(Sender& sender, const Bytes& data) {
  sender.push({.what = Order::put, .memory = 1, .value = data.size()}, data.data());
  sender.push({.what = Order::fence, .connection = 1, .value = 1});
  sender.push({.what = Order::signal, .memory = 1, .value = 7});
}

TEST_CASE("a put and the signal after it go in one message") {
  Pair pair;
  Sender sender(std::move(pair.near), 2);
  const Bytes data = counted(100);
  push_three(sender, data);
  CHECK(sender.bytes() == 100);
  CHECK(sender.send_some());
  const Bytes come = pair.next();
  CHECK(come.size() == 3 * sizeof(Order) + 104);
  CHECK(std::equal(data.begin(), data.end(), come.begin() + sizeof(Order)));
  CHECK(pair.next().empty());
  CHECK((sender.sent() == 3 && sender.bytes() == 0 && !sender.wants_write()));
}

TEST_CASE("a sender knows whether parts of long puts are in its queue") {
  Pair pair;
  Sender sender(std::move(pair.near), 2);
  const Bytes data = counted(100);
  push_three(sender, data);
  CHECK_FALSE(sender.has_long());
  sender.push({.what = Order::part, .memory = 1, .value = data.size()}, data.data());
  CHECK(sender.has_long());
  CHECK(sender.send_some());
  CHECK_FALSE(sender.has_long());
  sender.push({.what = Order::part, .memory = 1, .value = data.size()}, data.data());
  sender.close_writing();
  CHECK_FALSE(sender.has_long());
}

TEST_CASE("a batch begins where what was sent ends, and takes in what is pushed meanwhile") {
  Pair pair;
  Sender sender(std::move(pair.near), 2);
  const Bytes data = counted(100);
  sender.push({.what = Order::put, .memory = 1, .value = data.size()}, data.data());
  Batch first = sender.batch();
  sender.push({.what = Order::signal, .memory = 1, .value = 7});
  CHECK(first.send(sender.socket()) == 136);
  sender.take_sent(50);  // as if there had been no more room
  CHECK((sender.sent() == 0 && sender.bytes() == 100));
  CHECK(sender.batch().send(sender.socket()) == 136 + 32 - 50);
  sender.take_sent(136 + 32 - 50);
  CHECK((sender.sent() == 2 && sender.bytes() == 0));
  const Bytes whole = pair.next(), rest = pair.next();
  CHECK(std::equal(whole.begin() + 50, whole.end(), rest.begin()));
}

}  // namespace
}  // namespace mscclc::net
