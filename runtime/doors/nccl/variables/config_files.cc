#include "runtime/doors/nccl/variables/config_files.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "ir/support/read_file.h"
#include "runtime/support/process/per_process.h"

namespace mscclc::nccl {
namespace {

/// NCCL's own limit: it truncates what is longer.
constexpr size_t kMaxText = 1023;

struct Files {
  std::mutex mutex;
  std::map<std::string, std::string> texts;  ///< by path
};

std::string text_of(const std::string& path) {
  auto& files = process_wide<Files>();
  const std::lock_guard lock(files.mutex);
  const auto [file, is_new] = files.texts.try_emplace(path);
  if (is_new) file->second = read_file(path).value_or("");
  return file->second;
}

}  // namespace

std::string_view value_of(const Environment::Values& values, std::string_view name) {
  const auto found = values.find(name);
  return found == values.end() ? std::string_view() : std::string_view(found->second);
}

void take_lines(std::string_view text, Environment::Values& values) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, std::min(equals, kMaxText));
    if (!name.starts_with("NCCL_") && !name.starts_with("MSCCLC_")) continue;
    values.emplace(name, line.substr(equals + 1, kMaxText));
  }
}

void take_files(Environment::Values& values) {
  const std::string named(value_of(values, "NCCL_CONF_FILE"));
  const std::string home(value_of(values, "HOME"));
  if (!named.empty()) {
    take_lines(text_of(named), values);
  } else if (!home.empty()) {
    take_lines(text_of(home + "/.nccl.conf"), values);
  }
  take_lines(text_of("/etc/nccl.conf"), values);
}

}  // namespace mscclc::nccl
