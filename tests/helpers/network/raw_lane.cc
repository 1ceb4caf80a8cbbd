#include "tests/helpers/network/raw_lane.h"

#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "runtime/support/address/sockets.h"

namespace mscclc::net::testing {
namespace {

constexpr int kPatienceMs = 120'000;

bool is_ready(const Fd& socket, short events) {
  pollfd polled{socket.get(), events, 0};
  return ::poll(&polled, 1, kPatienceMs) == 1;
}

}  // namespace

Fd knock(const Address& address) {
  Fd socket = begin_connect(address);
  REQUIRE(is_ready(socket, POLLOUT));
  return socket;
}

Bytes hear(const Fd& socket, size_t count) {
  Bytes bytes(count);
  size_t got = 0;
  while (got < count && is_ready(socket, POLLIN)) {
    const ssize_t n = ::recv(socket.get(), bytes.data() + got, count - got, 0);
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

bool say(const Fd& socket, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno != EAGAIN || !is_ready(socket, POLLOUT))) return false;
    if (n > 0) bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

void say_bytewise(const Fd& socket, std::span<const uint8_t> bytes) {
  for (const uint8_t& byte : bytes) {
    if (!say(socket, {&byte, 1})) return;
  }
}

bool await_end(const Fd& socket, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  uint8_t bytes[4096];
  while (std::chrono::steady_clock::now() < until) {
    if (is_ready(socket, POLLIN) && ::recv(socket.get(), bytes, sizeof bytes, 0) <= 0) return true;
  }
  return false;
}

bool send_until_cut_off(const Fd& socket, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  const Bytes bytes(1 << 16);
  while (std::chrono::steady_clock::now() < until) {
    if (!say(socket, bytes)) return true;
  }
  return false;
}

Bytes as_bytes(const Order& order) {
  Bytes bytes(sizeof order);
  std::memcpy(bytes.data(), &order, sizeof order);
  return bytes;
}

RawFarEnd::RawFarEnd() : listener_(listen_on(Address::loopback(0))) {
  REQUIRE(listener_.valid());
  said_ = {Address::loopback(local_port(listener_)), 1, {}};
  fill_random(said_.key);
  offer_ = encode(said_);
}

void RawFarEnd::take(uint32_t connections) {
  for (uint32_t i = 0; i < connections; ++i) {
    if (!is_ready(listener_, POLLIN)) return;
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const Challenge challenge;
    (void)say(socket, encode(challenge));
    const auto hello = decode_hello(hear(socket, Hello::kBytes));
    if (!hello) return;
    (void)say(socket, encode(Welcome{receiver_proof(said_.key, challenge, *hello)}));
    sockets.push_back(std::move(socket));
  }
}

}  // namespace mscclc::net::testing
