#include "tools/playground/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plans/format/machines/machine.h"
#include "tools/base/sizes.h"

namespace mscclc::playground {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostText = 256 << 10;  // bytes of a program: links hold less

/// "R=8 I=2": false, and why, if that is not what it is.
bool read_parameters(const std::string& text, Request& request, std::string& error) {
  for (size_t at = 0; (at = text.find_first_not_of(" \t\n", at)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    const std::string word = text.substr(at, end - at);
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      error = fmt::format("parameter '{}' is not of the form NAME=VALUE, as in 'R=8 I=2'", word);
      return false;
    }
    const std::string name = word.substr(0, equals);
    if (std::ranges::count(request.parameters, name, &std::pair<std::string, std::string>::first)) {
      error = fmt::format("parameter '{}' is given twice", name);
      return false;
    }
    request.parameters.emplace_back(name, word.substr(equals + 1));
    at = end;
  }
  return true;
}

/// A file of that name is not looked for, as find_machine() would.
bool check_machine(const std::string& name, std::string& error) {
  const auto& machines = builtin_machines();
  if (name.empty() || std::ranges::count(machines, name, &Machine::name)) return true;
  error = fmt::format("unknown machine '{}'; there are:", name);
  for (const Machine& machine : machines) error += " " + machine.name;
  return false;
}

bool take(const std::string& key, const std::string& value, Request& request, std::string& error) {
  if (key == "ask") {
    if (value != "library" && value != "program") {
      error = fmt::format("'ask' is 'library' or 'program', not '{}'", value);
      return false;
    }
    request.ask = value == "library" ? Ask::library : Ask::program;
  } else if (key == "text") {
    if (value.size() > kMostText) {
      error = fmt::format("the program has {} bytes; the page takes {} at most", value.size(),
                          kMostText);
      return false;
    }
    request.text = value;
  } else if (key == "name") {
    request.name = value;
  } else if (key == "parameters") {
    return read_parameters(value, request, error);
  } else if (key == "bytes") {
    const auto bytes = parse_bytes(value);
    if (!bytes) error = fmt::format("'{}' is no size of a message; '64K' or '1M' is one", value);
    request.bytes = bytes.value_or(0);
    return bytes.has_value();
  } else if (key == "machine") {
    request.machine = value;
    return check_machine(value, error);
  } else {
    error = fmt::format("a request has no '{}'", key);
    return false;
  }
  return true;
}

}  // namespace

std::optional<Request> read_request(std::string_view json, std::string& error) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("ask")) {
    error = "a request is a JSON object with 'ask'";
    return std::nullopt;
  }
  Request request;
  for (const auto& [key, value] : parsed.items()) {
    if (!value.is_string()) {
      error = fmt::format("'{}' is a text", key);
      return std::nullopt;
    }
    if (!take(key, value.get<std::string>(), request, error)) return std::nullopt;
  }
  return request;
}

}  // namespace mscclc::playground
