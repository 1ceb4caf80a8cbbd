// Which of this machine's addresses the other ranks should use.
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>

#include "runtime/support/address/address.h"
#include "runtime/support/failed_call.h"

namespace mscclc {
namespace {

/// Bridges and virtual interfaces that lead to containers and virtual machines.
constexpr std::string_view kVirtual[] = {"docker", "veth",    "virbr", "br-",
                                         "cni",    "flannel", "cali"};

struct Pattern {
  bool exclude = false, exact = false;
  std::vector<std::string_view> names;

  /// Which entry a name matches; nullopt: none.
  std::optional<size_t> match(std::string_view name) const {
    for (size_t i = 0; i < names.size(); ++i) {
      if (exact ? name == names[i] : name.starts_with(names[i])) return i;
    }
    return std::nullopt;
  }
};

std::optional<Pattern> parse_pattern(std::string_view text) {
  Pattern pattern;
  if (text.starts_with('^')) pattern.exclude = true, text.remove_prefix(1);
  if (text.starts_with('=')) pattern.exact = true, text.remove_prefix(1);
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    pattern.names.push_back(text.substr(at, comma - at));
    const std::string_view name = pattern.names.back();
    if (name.empty() || name.front() == '^' || name.front() == '=') return std::nullopt;
    at = comma + 1;
  }
  return pattern;
}

bool is_virtual(std::string_view name) {
  return std::any_of(std::begin(kVirtual), std::end(kVirtual),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Lower is better; nullopt: not allowed.
std::optional<uint64_t> rank_interface(const Interface& i, const std::optional<Pattern>& pattern) {
  if (i.address.is_link_local()) return std::nullopt;
  const uint64_t family = i.address.is_v4() ? 0 : 1;
  const uint64_t kind = i.address.is_loopback() ? 2 : is_virtual(i.name) ? 1 : 0;
  if (!pattern) {
    if (kind == 1) return std::nullopt;
    return kind * 2 + family;
  }
  const std::optional<size_t> entry = pattern->match(i.name);
  if (pattern->exclude) {
    if (entry) return std::nullopt;
    return kind * 2 + family;
  }
  if (!entry) return std::nullopt;
  return *entry * 2 + family;
}

std::string names_of(const std::vector<Interface>& interfaces) {
  std::string out;
  for (const Interface& i : interfaces) {
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", i.name, i.address.host());
  }
  return out.empty() ? "none" : out;
}

}  // namespace

std::optional<std::vector<Interface>> list_interfaces(Diagnostics& diagnostics) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    report_failed_call(diagnostics, "no-interface",
                       "cannot look for this machine's network interfaces");
    return std::nullopt;
  }
  std::vector<Interface> out;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if ((i->ifa_flags & IFF_UP) == 0) continue;
    if (const auto address = Address::from(i->ifa_addr)) out.push_back({i->ifa_name, *address});
  }
  ::freeifaddrs(list);
  return out;
}

bool check_interface_pattern(std::string_view pattern, Diagnostics& diagnostics) {
  if (parse_pattern(pattern)) return true;
  diagnostics.error(
      "bad-variable", {},
      fmt::format("MSCCLC_SOCKET_IFNAME is '{}'; allowed are names separated by commas, with '^' "
                  "(all but these), '=' (whole names) or '^=' before the first",
                  pattern));
  return false;
}

std::optional<Address> choose_address(const std::vector<Interface>& interfaces,
                                      std::string_view pattern_text, int family,
                                      Diagnostics& diagnostics) {
  std::optional<Pattern> pattern;
  if (!pattern_text.empty()) {
    if (!check_interface_pattern(pattern_text, diagnostics)) return std::nullopt;
    pattern = parse_pattern(pattern_text);
  }
  const Interface* best = nullptr;
  uint64_t least = 0;
  for (const Interface& i : interfaces) {
    if (family != AF_UNSPEC && i.address.family() != family) continue;
    const std::optional<uint64_t> rank = rank_interface(i, pattern);
    if (rank && (best == nullptr || *rank < least)) best = &i, least = *rank;
  }
  if (best != nullptr) return best->address;
  const char* const which = family == AF_INET    ? " of IPv4 (MSCCLC_SOCKET_FAMILY)"
                            : family == AF_INET6 ? " of IPv6 (MSCCLC_SOCKET_FAMILY)"
                                                 : "";
  diagnostics
      .error("no-interface", {},
             pattern ? fmt::format("no network interface with an address{} that others can use "
                                   "fits MSCCLC_SOCKET_IFNAME='{}'",
                                   which, pattern_text)
             : *which != 0
                 ? fmt::format("this machine has no network interface with an address{} that "
                               "others can use",
                               which)
                 : std::string("this machine has no network interface that others can use"))
      .notes.push_back({"interfaces that are up: " + names_of(interfaces)});
  return std::nullopt;
}

std::optional<Address> choose_address(std::string_view pattern, int family,
                                      Diagnostics& diagnostics) {
  const auto interfaces = list_interfaces(diagnostics);
  return interfaces ? choose_address(*interfaces, pattern, family, diagnostics) : std::nullopt;
}

std::optional<int> socket_family(const Environment& environment, Diagnostics& diagnostics) {
  if (!environment.has(Variable::MSCCLC_SOCKET_FAMILY)) return AF_UNSPEC;
  const auto word = environment.text(Variable::MSCCLC_SOCKET_FAMILY, diagnostics);
  if (!word) return std::nullopt;
  return *word == "ipv4" ? AF_INET : AF_INET6;
}

}  // namespace mscclc
