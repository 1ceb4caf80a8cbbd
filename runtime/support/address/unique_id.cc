#include "runtime/support/address/unique_id.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "runtime/support/environment/environment.h"

namespace mscclc {
namespace {

constexpr std::string_view kVersion = "mscclc1";
constexpr std::string_view kLocal = "local";
constexpr std::string_view kDigits = "0123456789abcdef";

std::optional<UniqueId> bad(Diagnostics& diagnostics, const std::string& why) {
  diagnostics.error("bad-unique-id", {}, "this is not a unique id: " + why)
      .notes.push_back({"one looks like this: mscclc1/10.0.0.1/24123/ and 32 hexadecimal digits"});
  return std::nullopt;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('/', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (port == 0 || text.front() == '0') return std::nullopt;
  return port;
}

std::optional<Secret> parse_secret(std::string_view text) {
  Secret secret{};
  if (text.size() != 2 * secret.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    secret[i / 2] = static_cast<uint8_t>(secret[i / 2] << 4 | digit);
  }
  return secret;
}

}  // namespace

std::string UniqueId::text() const {
  std::string out = local ? fmt::format("{}/{}/0/", kVersion, kLocal)
                          : fmt::format("{}/{}/{}/", kVersion, address.host(), address.port());
  for (const uint8_t byte : secret) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::optional<UniqueId> UniqueId::parse(std::string_view text, Diagnostics& diagnostics) {
  if (text.size() >= kMaxText) return bad(diagnostics, "it is too long");
  const std::vector<std::string_view> parts = split(text);
  if (parts.front() != kVersion) {
    return bad(diagnostics, fmt::format("it does not begin with '{}/'", kVersion));
  }
  if (parts.size() != 4) {
    return bad(diagnostics, fmt::format("it has {} parts between '/', not 4", parts.size()));
  }
  UniqueId id;
  id.local = parts[1] == kLocal && parts[2] == "0";
  if (!id.local) {
    const std::optional<uint16_t> port = parse_port(parts[2]);
    if (!port) return bad(diagnostics, "its third part is not a port (1 to 65535)");
    const std::optional<Address> address = Address::parse(parts[1], *port);
    if (!address) return bad(diagnostics, "its second part is not an IPv4 or IPv6 address");
    id.address = *address;
  }
  const std::optional<Secret> secret = parse_secret(parts[3]);
  if (!secret) {
    return bad(diagnostics, "its last part is not a secret of 32 digits, 0-9 and a-f");
  }
  id.secret = *secret;
  return id;
}

std::optional<UniqueId> UniqueId::of_variable(const Environment& environment,
                                              Diagnostics& diagnostics) {
  const auto text = environment.text(Variable::MSCCLC_ID, diagnostics);
  if (!text) return std::nullopt;
  Diagnostics problems;
  const auto id = parse(*text, problems);
  for (Diagnostic d : problems.all()) {
    d.code = "bad-variable";
    d.message = "MSCCLC_ID: " + d.message;
    diagnostics.add(std::move(d));
  }
  return id;
}

}  // namespace mscclc
