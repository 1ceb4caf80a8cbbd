#include "runtime/doors/nccl/variables/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/support/upper.h"

namespace mscclc::nccl {
namespace {

using Values = Environment::Values;
using Text = std::optional<std::string>;

constexpr long long kMaxConnections = 16;  // of MSCCLC_SOCKET_CONNECTIONS

Text as_it_is(std::string_view value, const Values&) { return std::string(value); }

Text number(std::string_view value, const Values&) {
  const auto read = read_number(value);
  return read ? fmt::format("{}", *read) : std::string(value);
}

Text index(std::string_view value, const Values& values) {
  const auto read = read_number(value);
  return read && *read < 0 ? std::nullopt : number(value, values);
}

Text ib_disable(std::string_view value, const Values&) {
  return read_number(value).value_or(0) != 0 ? Text("sockets") : std::nullopt;
}

Text network(std::string_view value, const Values&) {
  const std::string name = upper(std::string(value));
  return name == "IB" ? Text("verbs") : name == "SOCKET" ? Text("sockets") : std::nullopt;
}

Text gdr_level(std::string_view value, const Values&) {
  return is_level_none(value) ? Text("1") : std::nullopt;
}

Text nvls(std::string_view value, const Values&) {
  return read_number(value) == 0 ? Text("0") : std::nullopt;
}

Text check_mode(std::string_view value, const Values&) {
  return value == "DEBUG_GLOBAL" ? Text("1") : std::nullopt;
}

Text family(std::string_view value, const Values&) {
  return value == "AF_INET" ? Text("ipv4") : value == "AF_INET6" ? Text("ipv6") : std::nullopt;
}

/// Sockets of a thread; ours counts those of a lane.
Text connections(std::string_view value, const Values& values) {
  const auto each = read_number(value);
  const auto found = values.find("NCCL_SOCKET_NTHREADS");
  const auto threads = found == values.end() ? std::nullopt : read_number(found->second);
  if (!each || *each < 1) return std::string(value);
  const long long most = std::clamp(threads.value_or(1), 1LL, kMaxConnections);
  return fmt::format("{}", std::min(*each, kMaxConnections / most) * most);
}

/// A list as NCCL reads it, with '^' and '=' before it: entries without a name are none, and of an
/// entry the first `fields` of those that colons part count; an empty one at its end does not.
Text list(std::string_view text, size_t fields) {
  std::string out;
  for (const char sign : {'^', '='}) {
    if (!text.starts_with(sign)) continue;
    out += sign;
    text.remove_prefix(1);
  }
  const size_t signs = out.size();
  while (!text.empty()) {
    std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    size_t end = 0;
    for (size_t field = 0; field < fields && end != std::string_view::npos; ++field) {
      end = entry.find(':', end == 0 ? 0 : end + 1);
    }
    entry = entry.substr(0, end);
    if (entry.ends_with(':')) entry.remove_suffix(1);
    if (entry.empty() || entry.front() == ':') continue;
    out += fmt::format("{}{}", out.size() > signs ? "," : "", entry);
  }
  return out.size() > signs ? Text(out) : std::nullopt;
}

/// NCCL has the default for a name of one letter.
Text interfaces(std::string_view value, const Values&) {
  return value.size() > 1 ? list(value, 1) : std::nullopt;
}

/// NCCL passes over what is not usable.
Text devices(std::string_view value, const Values&) {
  const Text made = list(value, 2);
  return made && !made->starts_with('^') ? Text("?" + *made) : made;
}

}  // namespace

std::optional<long long> read_number(std::string_view text) {
  const std::string terminated(text);
  char* end = nullptr;
  const long long value = std::strtoll(terminated.c_str(), &end, 0);
  return end == terminated.c_str() ? std::nullopt : std::optional(value);
}

std::optional<int> read_cta_policy(std::string_view text) {
  constexpr int kMost = 3;
  if (const auto number = read_number(text)) {
    return *number < 0 || *number > kMost ? std::nullopt : std::optional(static_cast<int>(*number));
  }
  std::optional<int> policy;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('|'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::string word = upper(std::string(part));
    const int bit = word == "EFFICIENCY" ? 1 : word == "ZERO" ? 2 : 0;
    if (bit != 0 || word == "DEFAULT") policy = policy.value_or(0) | bit;
  }
  return policy;
}

bool is_level_none(std::string_view level) {
  const bool number = !level.empty() && level.front() >= '0' && level.front() <= '9';
  return level == "LOC" || (number && read_number(level) == 0);
}

Translate translation(std::string_view name) {
  struct Row {
    std::string_view name;
    Translate translate;
  };
#define TRANSLATION(function) \
  { #function, function }
  constexpr Row kRows[] = {
      TRANSLATION(as_it_is),   TRANSLATION(check_mode), TRANSLATION(connections),
      TRANSLATION(devices),    TRANSLATION(family),     TRANSLATION(gdr_level),
      TRANSLATION(ib_disable), TRANSLATION(index),      TRANSLATION(interfaces),
      TRANSLATION(network),    TRANSLATION(number),     TRANSLATION(nvls),
  };
#undef TRANSLATION
  const auto* const row = std::ranges::find(kRows, name, &Row::name);
  return row == std::end(kRows) ? nullptr : row->translate;
}

}  // namespace mscclc::nccl
