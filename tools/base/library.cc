#include "tools/base/library.h"

#include <filesystem>
#include <vector>

#include "runtime/base/environment/environment.h"
#include "tools/base/files.h"

namespace mscclc {
namespace {

constexpr const char* kTable = "library.json";

/// Where to look; nothing after a mistake.
std::vector<std::string> folders(const std::string& named, Diagnostics& diagnostics) {
  if (!named.empty()) return {named};
  const Environment environment = Environment::of_process();
  if (environment.has(Variable::MSCCLC_LIBRARY)) {
    const auto folder = environment.text(Variable::MSCCLC_LIBRARY, diagnostics);
    return folder ? std::vector{*folder} : std::vector<std::string>{};
  }
  std::vector<std::string> found;
  std::error_code none;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!none) {
    const auto folder = executable.parent_path();
    found.push_back((folder / "plans").string());
    found.push_back((folder.parent_path() / "share/mscclc/plans").string());  // installed
  }
  found.emplace_back("plans");
  return found;
}

}  // namespace

std::optional<Library> open_library(const std::string& folder, Diagnostics& diagnostics) {
  std::string error;
  for (std::string place : folders(folder, diagnostics)) {
    if (!place.ends_with('/')) place += '/';
    const std::string path = place + kTable;
    const auto text = read_input(path, error);
    if (!text) continue;
    auto table = LibraryTable::parse(*text, path, diagnostics);
    if (!table) return std::nullopt;
    return Library{place, *std::move(table)};
  }
  if (diagnostics.has_errors()) return std::nullopt;
  diagnostics.error("no-library", {}, error)
      .notes.push_back({.text = "--library or MSCCLC_LIBRARY names the folder of the library"});
  return std::nullopt;
}

}  // namespace mscclc
