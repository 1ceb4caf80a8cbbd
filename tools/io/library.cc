#include "tools/io/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "plans/format/embedded_library.h"
#include "runtime/support/environment/environment.h"
#include "tools/io/files.h"

namespace mscclc {
namespace {

constexpr const char* kTable = "library.json";
constexpr std::string_view kEnding = ".mscl";

std::optional<std::string> compiled_in(const std::string& file) {
  const auto files = embedded_library();
  const auto found = std::ranges::find(files, file, &LibraryFile::name);
  return found == files.end() ? std::nullopt : std::optional(std::string(found->text));
}

/// The program that is compiled in and has a similar name, "; did you mean 'allreduce_push'?"
std::string similar(const std::string& name) {
  std::vector<std::string_view> names;
  for (const LibraryFile& file : embedded_library()) {
    if (!file.name.ends_with(kEnding)) continue;
    names.push_back(file.name.substr(0, file.name.size() - kEnding.size()));
  }
  const std::string near = nearest(name, names);
  return near.empty() ? "" : fmt::format("; did you mean the library's '{}'?", near);
}

/// Where to look; "" is what is compiled in. Nothing after a mistake.
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
  found.emplace_back();
  return found;
}

}  // namespace

std::string Library::path_of(const LibraryChoice& choice) const {
  if (!choice.plan.empty()) return folder + choice.plan;
  return folder.empty() ? choice.program : fmt::format("{}{}{}", folder, choice.program, kEnding);
}

Result<std::string> Library::read(const std::string& file) const {
  if (!folder.empty()) return read_input(folder + file);
  if (auto text = compiled_in(file)) return *std::move(text);
  return Error{fmt::format("no '{}' is compiled in", file)};
}

Result<NamedText> read_program(const std::string& path) {
  const bool may_be_name = path.find_first_of("/.") == std::string::npos;
  if (may_be_name) {
    const std::string file = fmt::format("{}{}", path, kEnding);
    if (auto text = compiled_in(file)) return NamedText{file, *std::move(text)};
  }
  auto text = read_input(path);
  if (text) return NamedText{path, *std::move(text)};
  return Error{text.error().text() + (may_be_name ? similar(path) : "")};
}

std::optional<Library> open_library(const std::string& folder, Diagnostics& diagnostics) {
  std::string error;
  for (std::string place : folders(folder, diagnostics)) {
    if (!place.empty() && !place.ends_with('/')) place += '/';
    Library library{.folder = std::move(place), .table = {}};
    const auto text = library.read(kTable);
    if (!text) {
      error = text.error().text();
      continue;
    }
    auto table = LibraryTable::parse(*text, library.folder + kTable, diagnostics);
    if (!table) return std::nullopt;
    library.table = *std::move(table);
    return library;
  }
  if (diagnostics.has_errors()) return std::nullopt;
  diagnostics.error("no-library", {}, error)
      .notes.push_back({.text = "--library or MSCCLC_LIBRARY names the folder of the library"});
  return std::nullopt;
}

std::optional<SumOrder> order_of_calls(const std::string& option, Diagnostics& diagnostics) {
  if (const auto order = find_sum_order(option)) return order;
  return Environment::of_process().order(diagnostics);
}

}  // namespace mscclc
