#include "tools/io/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "ir/contract/collectives.h"
#include "ir/diagnostics/diagnostic.h"
#include "plans/format/embedded_library.h"
#include "plans/format/row_table.h"
#include "runtime/support/environment/environment.h"
#include "tools/io/files.h"

namespace mscclc {
namespace {

constexpr const char* kTable = "library.json";
constexpr std::string_view kEnding = ".mscl";

std::optional<std::string> compiled_in(const std::string& file) {
  for (const auto files : {embedded_library(), embedded_rows()}) {  // library.json is of the first
    const auto found = std::ranges::find(files, file, &LibraryFile::name);
    if (found != files.end()) return std::string(found->text);
  }
  return std::nullopt;
}

/// Functions that programs import have a file of their own, which is no program.
void add_programs(std::span<const LibraryFile> files, bool of_rows,
                  std::vector<NamedProgram>& programs) {
  for (const LibraryFile& file : files) {
    if (!file.name.ends_with(kEnding) || file.text.find("\ncollective") == file.text.npos) continue;
    programs.push_back(
        {file.name.substr(0, file.name.size() - kEnding.size()), file.text, of_rows});
  }
}

/// What is compiled in and could be meant: the programs of a collective, or the one that has a
/// similar name, "; did you mean the library's 'allreduce_push'?"
std::string similar(const std::string& name) {
  const auto of_rows = builtin_row_table().names();
  if (find_collective(name) || std::ranges::find(of_rows, name) != of_rows.end()) {
    return fmt::format("; 'mscclc select --collective {}' says which program its calls get", name);
  }
  std::vector<std::string_view> names;
  for (const NamedProgram& program : named_programs()) names.push_back(program.name);
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

std::optional<std::string> look_into_program(const std::string& file) {
  const std::string path = file.substr(0, file.find(':'));
  std::error_code error;
  const bool is_read_once = path == "-" || (std::filesystem::exists(path, error) &&
                                            !std::filesystem::is_regular_file(path, error));
  if (is_read_once) return std::nullopt;
  auto program = read_program(path);
  if (!program || program->text.find("\nparam") == std::string::npos) return std::nullopt;
  return std::move(program->text);
}

Result<NamedText> read_program(const std::string& path) {
  const bool may_be_name = path.find_first_of("/.") == std::string::npos;
  if (may_be_name) {
    const auto programs = named_programs();
    const auto found = std::ranges::find(programs, path, &NamedProgram::name);
    if (found != programs.end()) {
      return NamedText{fmt::format("{}{}", path, kEnding), std::string(found->text), true};
    }
  }
  auto text = read_input(path);
  if (text) return NamedText{path, *std::move(text)};
  return Error{text.error().text() + (may_be_name ? similar(path) : "")};
}

std::string columns_parameter(const std::string& file) {
  const auto text = look_into_program(file);
  for (const char* end : {",", ")"}) {
    if (text && text->find(fmt::format("columns: N{}", end)) != std::string::npos) return "N";
  }
  return "";
}

std::function<std::optional<std::string>(const std::string& path)> reader_of_imports(
    const NamedText& program) {
  return [compiled = program.compiled_in](const std::string& path) -> std::optional<std::string> {
    if (compiled) return compiled_in(path);
    if (auto text = read_input(path)) return *std::move(text);
    return std::nullopt;
  };
}

std::vector<NamedProgram> named_programs() {
  std::vector<NamedProgram> programs;
  add_programs(embedded_library(), false, programs);
  add_programs(embedded_rows(), true, programs);
  return programs;
}

std::string unknown_collective(const std::string& word, const std::vector<std::string>& more) {
  std::vector<std::string_view> names = collective_names();
  names.insert(names.end(), more.begin(), more.end());
  const std::string near = nearest(word, names);
  const std::string hint = near.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                        : fmt::format("did you mean '{}'?", near);
  return fmt::format("unknown collective '{}'; {}", word, hint);
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
