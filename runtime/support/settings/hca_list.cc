#include "runtime/support/settings/hca_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/support/environment/environment.h"

namespace mscclc {
namespace {

bool take(std::string_view& text, char sign) {
  const bool there = text.starts_with(sign);
  if (there) text.remove_prefix(1);
  return there;
}

Result<HcaList::HcaPort> parse_entry(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  HcaList::HcaPort entry{std::string(name)};
  if (name.empty()) return Error{"a device has no name"};
  if (name.front() == '^' || name.front() == '=' || name.front() == '?') {
    return Error{"'?', '^' and '=' stand once, before the whole list, in this order"};
  }
  if (name.find(' ') != std::string_view::npos) {
    return Error{"no device has a name with spaces"};
  }
  if (colon == std::string_view::npos) return entry;
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), entry.port);
  if (error == std::errc() && end == port.data() + port.size() && entry.port != 0) return entry;
  return Error{fmt::format("'{}' is not a port: ports are numbered from 1 to 255", port)};
}

}  // namespace

bool HcaList::fits(const HcaPort& entry, std::string_view device, uint8_t port) const {
  return (exact ? device == entry.name : device.starts_with(entry.name)) &&
         (entry.port == 0 || entry.port == port);
}

bool HcaList::has(std::string_view device, uint8_t port) const {
  if (entries.empty()) return true;
  const bool named =
      std::ranges::any_of(entries, [&](const HcaPort& entry) { return fits(entry, device, port); });
  return named != others;
}

Result<HcaList> parse_hca_list(std::string_view text) {
  HcaList list;
  if (text.empty()) return list;
  list.lenient = take(text, '?');
  list.others = take(text, '^');
  list.exact = take(text, '=');
  for (;;) {
    const size_t comma = text.find(',');
    const auto entry = parse_entry(text.substr(0, comma));
    if (!entry) return entry.error();
    list.entries.push_back(*entry);
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

std::optional<HcaList> read_hca_list(const std::string& text, Diagnostics& diagnostics) {
  auto list = parse_hca_list(text);
  if (list) return *std::move(list);
  diagnostics.error("bad-variable", {},
                    fmt::format("{} is {}; {}", info(Variable::MSCCLC_IB_HCA).name, quoted(text),
                                list.error().text()));
  return std::nullopt;
}

}  // namespace mscclc
