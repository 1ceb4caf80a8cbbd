#include "tools/lsp/protocol/uri.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>

namespace mscclc::lsp {
namespace {

constexpr std::string_view kScheme = "file://";

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

bool stands_for_itself(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-._~/").find(c) != std::string_view::npos;
}

}  // namespace

std::string path_of_uri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::string(uri);
  const size_t slash = uri.find('/', kScheme.size());  // after the host, which is mostly empty
  if (slash == std::string_view::npos) return std::string(uri);
  std::string path;
  for (size_t i = slash; i < uri.size(); ++i) {
    if (uri[i] != '%') {
      path += uri[i];
      continue;
    }
    const auto high = i + 2 < uri.size() ? hex_digit(uri[i + 1]) : std::nullopt;
    const auto low = high ? hex_digit(uri[i + 2]) : std::nullopt;
    if (!low || (*high == 0 && *low == 0)) return std::string(uri);
    path += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return path;
}

std::string uri_of_path(std::string_view path) {
  std::string uri(kScheme);
  for (const char c : path) {
    if (stands_for_itself(c)) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return uri;
}

}  // namespace mscclc::lsp
