#include "runtime/support/memory/fd_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "runtime/support/bytes.h"

namespace mscclc {
namespace {

constexpr uint8_t kVersion = 2;
/// Of an answer: the version, the range.
constexpr size_t kAnswerBytes = 17;
constexpr std::string_view kPrefix = "mscclc-";
constexpr int kBacklog = 128;

struct UnixAddress {
  sockaddr_un address{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

/// A zero byte, then "mscclc-" and the name in hexadecimal digits.
UnixAddress address_of(const FdTicket& ticket) {
  UnixAddress a;
  a.address.sun_family = AF_UNIX;
  std::string name(kPrefix);
  for (const uint8_t byte : ticket.socket) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  std::memcpy(a.address.sun_path + 1, name.data(), name.size());
  a.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return a;
}

Fd open_socket() { return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

template <class Call>
auto retried(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

/// A packet, with room for exactly one descriptor beside it: the kernel closes what does not fit.
struct PacketWithFd {
  explicit PacketWithFd(std::span<uint8_t> bytes) : data{bytes.data(), bytes.size()} {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  PacketWithFd(const PacketWithFd&) = delete;
  PacketWithFd& operator=(const PacketWithFd&) = delete;

  iovec data;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
};

}  // namespace

std::vector<uint8_t> FdTicket::bytes() const {
  std::vector<uint8_t> out;
  ByteWriter(out).number(kVersion).bytes(socket).bytes(secret);
  return out;
}

std::optional<FdTicket> FdTicket::read(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  const auto version = reader.number<uint8_t>();
  const std::span<const uint8_t> socket = reader.bytes(16), secret = reader.bytes(16);
  if (!reader.ended() || version != kVersion) return std::nullopt;
  FdTicket ticket;
  std::copy(socket.begin(), socket.end(), ticket.socket.begin());
  std::copy(secret.begin(), secret.end(), ticket.secret.begin());
  return ticket;
}

Fd listen_for_fds(const FdTicket& ticket) {
  Fd socket = open_socket();
  if (!socket.valid()) return socket;
  const UnixAddress address = address_of(ticket);
  if (::bind(socket.get(), address.get(), address.length) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    socket.reset();
  }
  return socket;
}

Fd connect_for_fds(const FdTicket& ticket) {
  Fd socket = open_socket();
  if (!socket.valid()) return socket;
  const UnixAddress address = address_of(ticket);
  if (retried([&] { return ::connect(socket.get(), address.get(), address.length); }) != 0) {
    socket.reset();
  }
  return socket;
}

bool send_secret(const Fd& socket, const FdSecret& secret) {
  return retried([&] {
           return ::send(socket.get(), secret.data(), secret.size(), MSG_NOSIGNAL);
         }) == static_cast<ssize_t>(secret.size());
}

bool receive_secret(const Fd& socket, FdSecret& secret) {
  // MSG_TRUNC: the whole length of the packet, so that a longer one is noticed. Descriptors that a
  // client sends along are closed by the kernel, as there is no room for them.
  return retried([&] { return ::recv(socket.get(), secret.data(), secret.size(), MSG_TRUNC); }) ==
         static_cast<ssize_t>(secret.size());
}

bool send_fd(const Fd& socket, const Fd& fd, const MemoryRange& range) {
  std::vector<uint8_t> answer;
  ByteWriter(answer).number(kVersion).number(range.offset).number(range.bytes);
  PacketWithFd packet(answer);
  cmsghdr* head = CMSG_FIRSTHDR(&packet.header);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  const int raw = fd.get();
  std::memcpy(CMSG_DATA(head), &raw, sizeof raw);
  return retried([&] { return ::sendmsg(socket.get(), &packet.header, MSG_NOSIGNAL); }) ==
         static_cast<ssize_t>(answer.size());
}

Fd receive_fd(const Fd& socket, MemoryRange& range) {
  std::array<uint8_t, kAnswerBytes + 1> answer{};  // a longer one is noticed
  PacketWithFd packet(answer);
  const ssize_t got =
      retried([&] { return ::recvmsg(socket.get(), &packet.header, MSG_CMSG_CLOEXEC); });
  Fd fd;
  for (cmsghdr* head = CMSG_FIRSTHDR(&packet.header); got >= 0 && head != nullptr;
       head = CMSG_NXTHDR(&packet.header, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    // CMSG_SPACE rounds up, so two descriptors may fit.
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= head->cmsg_len; at += sizeof(int)) {
      int raw = -1;
      std::memcpy(&raw, reinterpret_cast<const char*>(head) + at, sizeof raw);
      fd.reset(raw);
    }
  }
  ByteReader reader(answer);
  const auto version = reader.number<uint8_t>();
  range.offset = reader.number<uint64_t>();
  range.bytes = reader.number<uint64_t>();
  if (got != static_cast<ssize_t>(kAnswerBytes) || version != kVersion) fd.reset();
  // The kernel cuts off what this process has no descriptor for.
  errno = got >= 0 && (packet.header.msg_flags & MSG_CTRUNC) != 0 ? EMFILE : 0;
  return fd;
}

}  // namespace mscclc
