#include "tools/playground/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plans/format/machines/machine.h"
#include "tools/io/sizes.h"

namespace mscclc::playground {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxText = 256 << 10;  // bytes of a program: links hold less

/// "R=8 I=2"
Result<void> read_parameters(const std::string& text, Request& request) {
  for (size_t at = 0; (at = text.find_first_not_of(" \t\n", at)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    const std::string word = text.substr(at, end - at);
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{
          fmt::format("parameter '{}' is not of the form NAME=VALUE, as in 'R=8 I=2'", word)};
    }
    const std::string name = word.substr(0, equals);
    if (std::ranges::count(request.parameters, name, &std::pair<std::string, std::string>::first)) {
      return Error{fmt::format("parameter '{}' is given twice", name)};
    }
    request.parameters.emplace_back(name, word.substr(equals + 1));
    at = end;
  }
  return {};
}

/// A file of that name is not looked for, as find_machine() would.
Result<void> check_machine(const std::string& name) {
  const auto& machines = builtin_machines();
  if (name.empty() || std::ranges::count(machines, name, &Machine::name)) return {};
  std::string message = fmt::format("unknown machine '{}'; there are:", name);
  for (const Machine& machine : machines) message += " " + machine.name;
  return Error{message};
}

Result<void> take(const std::string& key, const std::string& value, Request& request) {
  if (key == "ask") {
    if (value != "library" && value != "program") {
      return Error{fmt::format("'ask' is 'library' or 'program', not '{}'", value)};
    }
    request.ask = value == "library" ? Ask::library : Ask::program;
  } else if (key == "text") {
    if (value.size() > kMaxText) {
      return Error{fmt::format("the program has {} bytes; the page takes {} at most", value.size(),
                               kMaxText)};
    }
    request.text = value;
  } else if (key == "name") {
    request.name = value;
  } else if (key == "parameters") {
    return read_parameters(value, request);
  } else if (key == "bytes") {
    const auto bytes = parse_bytes(value);
    if (!bytes) {
      return Error{fmt::format("'{}' is no size of a message; '64K' or '1M' is one", value)};
    }
    request.bytes = *bytes;
  } else if (key == "machine") {
    request.machine = value;
    return check_machine(value);
  } else {
    return Error{fmt::format("a request has no '{}'", key)};
  }
  return {};
}

}  // namespace

Result<Request> read_request(std::string_view json) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("ask")) {
    return Error{"a request is a JSON object with 'ask'"};
  }
  Request request;
  for (const auto& [key, value] : parsed.items()) {
    if (!value.is_string()) return Error{fmt::format("'{}' is a text", key)};
    const auto taken = take(key, value.get<std::string>(), request);
    if (!taken) return taken.error();
  }
  return request;
}

}  // namespace mscclc::playground
