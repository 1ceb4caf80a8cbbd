#include "tools/doctor/machine.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace mscclc::doctor {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = 1 << 20;             // of a file of the system
constexpr size_t kMaxLibrary = size_t{16} << 20;  // of a library that is searched for a text

std::optional<std::string> beginning_of(const std::string& path, size_t most) {
  std::error_code error;
  const auto type = fs::status(path, error).type();
  if (type != fs::file_type::regular) return std::nullopt;  // a pipe would not end
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

/// Programs of a driver that has failed may hang.
std::optional<std::string> printed_by(const std::string& command) {
  const std::string limited = "timeout 20 " + command + " 2>/dev/null </dev/null";
  FILE* pipe = ::popen(limited.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < kMaxBytes) {
    const size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe);
    if (count == 0) break;
    text.append(buffer.data(), count);
  }
  if (::pclose(pipe) != 0) return std::nullopt;
  return text;
}

}  // namespace

std::optional<std::string> Machine::read(const std::string& path) const {
  return beginning_of(root + path, kMaxBytes);
}

std::optional<std::string> Machine::line(const std::string& path) const {
  const auto text = read(path);
  if (!text) return std::nullopt;
  std::string first = text->substr(0, text->find('\n'));
  first.erase(0, std::min(first.find_first_not_of(" \t"), first.size()));
  first.erase(first.find_last_not_of(" \t\r") + 1);
  return first;
}

std::optional<uint64_t> Machine::number(const std::string& path) const {
  const auto text = line(path);
  if (!text || text->empty() || text->find_first_not_of("0123456789") != std::string::npos ||
      text->size() > 19) {
    return std::nullopt;
  }
  return std::stoull(*text);
}

bool Machine::exists(const std::string& path) const {
  std::error_code error;
  return fs::exists(root + path, error);
}

bool Machine::can_write(const std::string& path) const {
  return ::access((root + path).c_str(), R_OK | W_OK) == 0;
}

std::vector<std::string> Machine::list(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator i(root + path, error), end; !error && i != end; i.increment(error)) {
    names.push_back(i->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

std::string Machine::link(const std::string& path) const {
  std::error_code error;
  return fs::read_symlink(root + path, error).string();
}

std::optional<uint64_t> Machine::file_system_bytes(const std::string& path) const {
  struct statvfs info = {};
  if (::statvfs((root + path).c_str(), &info) != 0) return std::nullopt;
  return uint64_t{info.f_frsize} * info.f_blocks;
}

bool Machine::file_has(const std::string& path, std::string_view text) const {
  const auto bytes = beginning_of(root + path, kMaxLibrary);
  return bytes && bytes->find(text) != std::string::npos;
}

std::string Machine::variable(const std::string& name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

Machine this_machine() {
  Machine machine;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    machine.variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  machine.run = printed_by;
  machine.cuda = ask_this_driver();
  return machine;
}

}  // namespace mscclc::doctor
