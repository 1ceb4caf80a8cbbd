#include "runtime/support/address/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "ir/support/precondition.h"
#include "runtime/support/fd.h"

namespace mscclc {
namespace {

const sockaddr_in& v4(const sockaddr_storage& s) { return reinterpret_cast<const sockaddr_in&>(s); }
const sockaddr_in6& v6(const sockaddr_storage& s) {
  return reinterpret_cast<const sockaddr_in6&>(s);
}

}  // namespace

std::optional<Address> Address::parse(std::string_view host, uint16_t port) {
  const std::string text(host);
  Address out;
  auto& four = reinterpret_cast<sockaddr_in&>(out.storage_);
  auto& six = reinterpret_cast<sockaddr_in6&>(out.storage_);
  if (inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    out.storage_.ss_family = AF_INET;
  } else if (inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1) {
    out.storage_.ss_family = AF_INET6;
  } else {
    return std::nullopt;
  }
  out.set_port(port);
  if (out.host() != host) return std::nullopt;  // also: a zero byte in `host`
  return out;
}

std::optional<Address> Address::from(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  Address out;
  if (address->sa_family == AF_INET) {
    std::memcpy(&out.storage_, address, sizeof(sockaddr_in));
  } else if (address->sa_family == AF_INET6) {
    std::memcpy(&out.storage_, address, sizeof(sockaddr_in6));
    if (IN6_IS_ADDR_V4MAPPED(&v6(out.storage_).sin6_addr)) return out.unmapped();
  } else {
    return std::nullopt;
  }
  return out;
}

// An IPv4 address as a socket for both families sees it.
Address Address::unmapped() const {
  Address out;
  auto& four = reinterpret_cast<sockaddr_in&>(out.storage_);
  four.sin_family = AF_INET;
  four.sin_port = v6(storage_).sin6_port;
  std::memcpy(&four.sin_addr, v6(storage_).sin6_addr.s6_addr + 12, 4);
  return out;
}

Address Address::local(std::span<const uint8_t, 16> key, uint16_t number) {
  Address out;
  std::copy(key.begin(), key.end(), out.key_.begin());
  out.number_ = number;
  auto& address = reinterpret_cast<sockaddr_un&>(out.storage_);
  address.sun_family = AF_UNIX;
  const std::string name = out.name();  // after a zero byte: no file
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return out;
}

std::string Address::name() const {
  std::string out = "mscclc-hub-";
  for (const uint8_t byte : key_) out += fmt::format("{:02x}", byte);
  return out + fmt::format("-{}", number_);
}

Address Address::loopback(uint16_t port) { return *parse("127.0.0.1", port); }

socklen_t Address::length() const {
  if (is_v4()) return sizeof(sockaddr_in);
  if (!is_local()) return sizeof(sockaddr_in6);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name().size());
}

std::array<uint8_t, Address::kBytes> Address::bytes() const {
  std::array<uint8_t, kBytes> out{};
  if (storage_.ss_family == AF_UNSPEC) return out;
  uint16_t number = number_;
  if (is_local()) {
    out[0] = 1;
    std::copy(key_.begin(), key_.end(), out.begin() + 1);
  } else {
    out[0] = is_v4() ? 4 : 6;
    number = port();
    if (is_v4()) {
      std::memcpy(&out[1], &v4(storage_).sin_addr, 4);
    } else {
      std::memcpy(&out[1], &v6(storage_).sin6_addr, 16);
    }
  }
  std::memcpy(&out[17], &number, sizeof number);
  return out;
}

bool Address::is_loopback() const {
  if (is_v4()) return ntohl(v4(storage_).sin_addr.s_addr) >> 24 == 127;
  return !is_local() && IN6_IS_ADDR_LOOPBACK(&v6(storage_).sin6_addr);
}

bool Address::is_link_local() const {
  if (is_v4()) return ntohl(v4(storage_).sin_addr.s_addr) >> 16 == 0xa9fe;  // 169.254.0.0/16
  return !is_local() && IN6_IS_ADDR_LINKLOCAL(&v6(storage_).sin6_addr);
}

uint16_t Address::port() const {
  precondition(!is_local());
  return ntohs(is_v4() ? v4(storage_).sin_port : v6(storage_).sin6_port);
}

void Address::set_port(uint16_t port) {
  if (is_v4()) {
    reinterpret_cast<sockaddr_in&>(storage_).sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6&>(storage_).sin6_port = htons(port);
  }
}

std::string Address::host() const {
  if (is_local()) return "this machine";
  char text[INET6_ADDRSTRLEN] = "";
  const void* raw = is_v4() ? static_cast<const void*>(&v4(storage_).sin_addr)
                            : static_cast<const void*>(&v6(storage_).sin6_addr);
  inet_ntop(storage_.ss_family, raw, text, sizeof text);
  return text;
}

std::string Address::text() const {
  if (is_local()) return "@" + name();
  return is_v4() ? fmt::format("{}:{}", host(), port()) : fmt::format("[{}]:{}", host(), port());
}

std::vector<Address> resolve(const std::string& host, uint16_t port, Diagnostics& diagnostics) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  std::vector<Address> out;
  for (const addrinfo* i = list; error == 0 && i != nullptr; i = i->ai_next) {
    if (auto address = Address::from(i->ai_addr)) {
      address->set_port(port);
      out.push_back(*address);
    }
  }
  if (error == 0) ::freeaddrinfo(list);
  if (out.empty()) {
    const std::string why = error == EAI_SYSTEM ? error_text(errno)
                            : error != 0        ? ::gai_strerror(error)
                                                : "it has no internet address";
    diagnostics.error("unknown-host", {}, fmt::format("cannot resolve host '{}': {}", host, why));
  }
  return out;
}

}  // namespace mscclc
