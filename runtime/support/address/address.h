// Where sockets are: internet addresses, and names on this machine; and which of this machine's
// addresses others should use.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {

/// An IPv4 or IPv6 address with a port; or a unix socket of this machine, in the abstract
/// namespace (nothing stays in the file system), with a key and a number as its name.
class Address {
 public:
  static constexpr size_t kBytes = 19;  ///< of bytes()

  /// Nowhere: what the unnamed end of a unix socket has.
  Address() = default;
  static Address local(std::span<const uint8_t, 16> key, uint16_t number);
  /// Reads a numeric address, "10.0.0.1" or "2001:db8::1", in the one spelling that host() writes.
  [[nodiscard]] static std::optional<Address> parse(std::string_view host, uint16_t port);
  [[nodiscard]] static std::optional<Address> from(const sockaddr* address);
  static Address loopback(uint16_t port);

  bool is_v4() const { return storage_.ss_family == AF_INET; }
  bool is_local() const { return storage_.ss_family == AF_UNIX; }
  int family() const { return storage_.ss_family; }
  bool is_loopback() const;
  /// Valid on one link only: no use to other machines without the name of an interface.
  bool is_link_local() const;
  /// REQUIRES: not local.
  uint16_t port() const;
  void set_port(uint16_t port);
  /// "10.0.0.1", "2001:db8::1", "this machine".
  std::string host() const;
  /// "10.0.0.1:80", "[2001:db8::1]:80", "@mscclc-hub-…-1", as ss(8) shows it.
  std::string text() const;
  /// The same bytes for the same place: family, address or name, port or number.
  std::array<uint8_t, kBytes> bytes() const;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const;
  friend bool operator==(const Address& a, const Address& b) { return a.text() == b.text(); }

 private:
  Address unmapped() const;
  std::string name() const;

  sockaddr_storage storage_{};
  std::array<uint8_t, 16> key_{};  ///< local only
  uint16_t number_ = 0;            ///< local only
};

/// An address of this machine and the interface that has it.
struct Interface {
  std::string name;
  Address address;  ///< port 0
};

/// Addresses of this machine's interfaces that are up. nullopt: reported (no-descriptors,
/// no-interface).
[[nodiscard]] std::optional<std::vector<Interface>> list_interfaces(Diagnostics& diagnostics);

/// Whether a pattern of MSCCLC_SOCKET_IFNAME, as below, has a name in each place. Errors
/// (bad-variable).
[[nodiscard]] bool check_interface_pattern(std::string_view pattern, Diagnostics& diagnostics);

/// The address that a pattern of MSCCLC_SOCKET_IFNAME picks. A pattern is a list of prefixes of
/// names, "eth,ib"; "=" first: of whole names; "^" first: of those to leave out ("^=": both).
/// Empty: any but those of containers and virtual machines, and loopback if there is no other.
/// Earlier entries win, then IPv4; `family` (AF_INET, AF_INET6, or AF_UNSPEC: both) leaves out
/// addresses. Errors (no-interface): with the interfaces that there are.
[[nodiscard]] std::optional<Address> choose_address(const std::vector<Interface>& interfaces,
                                                    std::string_view pattern, int family,
                                                    Diagnostics& diagnostics);
/// The same, of this machine's interfaces. Errors also as list_interfaces().
[[nodiscard]] std::optional<Address> choose_address(std::string_view pattern, int family,
                                                    Diagnostics& diagnostics);
/// MSCCLC_SOCKET_FAMILY as choose_address() takes it. Errors (bad-variable).
[[nodiscard]] std::optional<int> socket_family(const Environment& environment,
                                               Diagnostics& diagnostics);

/// All addresses of a host name. Errors (unknown-host).
[[nodiscard]] std::vector<Address> resolve(const std::string& host, uint16_t port,
                                           Diagnostics& diagnostics);

}  // namespace mscclc
