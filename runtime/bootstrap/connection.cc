#include "runtime/bootstrap/connection.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace mscclc {
namespace {

constexpr size_t kReadAtOnce = 64 << 10;
constexpr int kReadsInARow = 4;
constexpr size_t kWriteAtOnce = 1 << 20;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Connection::Connection(Fd socket, uint64_t limit) : socket_(std::move(socket)), in_(limit) {}

bool Connection::read_some() {
  uint8_t buffer[kReadAtOnce];
  for (int i = 0; i < kReadsInARow; ++i) {
    const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
    if (got > 0) {
      in_.feed({buffer, static_cast<size_t>(got)});
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) return true;
    why_ = got == 0 ? "its connection was closed" : error_text(errno);
    return false;
  }
  return true;
}

bool Connection::write_some() {
  while (!out_.empty()) {
    const wire::Bytes& bytes = *out_.front();
    const size_t count = std::min(bytes.size() - written_, kWriteAtOnce);
    const ssize_t put = ::send(socket_.get(), bytes.data() + written_, count, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && would_block(errno)) return true;
    if (put < 0) {
      why_ = error_text(errno);
      return false;
    }
    written_ += static_cast<uint64_t>(put);
    if (written_ < bytes.size()) continue;
    out_.pop_front();
    written_ = 0;
  }
  return true;
}

void Connection::end_writing() { ::shutdown(socket_.get(), SHUT_WR); }

Fd open_tcp(int family) {
  return Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_option(const Fd& socket, int level, int option, int value) {
  ::setsockopt(socket.get(), level, option, &value, sizeof value);
}

void set_options(const Fd& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kDeadMachineSeconds / 3);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kDeadMachineSeconds / 6);
  // Also while data is on its way, when keepalive does not ask.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kDeadMachineSeconds * 1000);
}

uint16_t local_port(const Fd& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* raw = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(socket.get(), raw, &length) != 0) return 0;
  const auto address = Address::from(raw);
  return address ? address->port() : 0;
}

Fd begin_connect(const Address& address) {
  Fd socket = open_tcp(address.is_v4() ? AF_INET : AF_INET6);
  if (!socket.valid()) return socket;
  // EINTR: it goes on all the same, as if EINPROGRESS.
  if (::connect(socket.get(), address.get(), address.length()) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    socket.reset();
  }
  return socket;
}

int connect_error(const Fd& socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

}  // namespace mscclc
