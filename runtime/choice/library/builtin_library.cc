#include "runtime/api/builtin_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "ir/diagnostics/printable.h"
#include "ir/support/read_file.h"
#include "plans/format/embedded_library.h"
#include "runtime/choice/library/kernel_folder.h"
#include "runtime/choice/library/program_library.h"
#include "runtime/choice/proofs/policy.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/log.h"

namespace mscclc {
namespace {

constexpr const char* kTable = "library.json";

std::optional<std::string> read_embedded(const std::string& name) {
  const auto files = embedded_library();
  const auto found = std::ranges::find(files, name, &LibraryFile::name);
  return found == files.end() ? std::nullopt : std::optional(std::string(found->text));
}

bool refuse(std::string message, const char* remedy, Diagnostics& diagnostics) {
  diagnostics.error("no-registry", {}, std::move(message)).notes.push_back({.text = remedy});
  return false;
}

bool names_programs(const LibraryTable& table, const std::string& place, Diagnostics& diagnostics) {
  const auto is_plan = [](const LibraryRow& row) { return !row.choice.plan.empty(); };
  if (std::ranges::none_of(table.rows(), is_plan)) return true;
  return refuse(fmt::format("'{}{}' names plans, not programs", place, kTable),
                "PlanRegistry::add_path() takes folders of plans", diagnostics);
}

}  // namespace

std::shared_ptr<PlanProvider> builtin_library(const LibraryOptions& options,
                                              Diagnostics& diagnostics) {
  const Environment environment = Environment::of_process();
  const auto policy = proof_policy(options.proof, environment, diagnostics);
  auto kernels = policy ? kernel_folder(environment, diagnostics) : std::nullopt;
  if (!kernels || !start_log(environment, diagnostics)) return nullptr;
  std::error_code none;
  if (!kernels->empty() && !std::filesystem::is_directory(*kernels, none)) {
    log(LogLevel::warn, LogArea::load, std::nullopt,
        fmt::format("MSCCLC_KERNEL_PATH is {}, which is not a folder: no kernels are loaded",
                    quoted(*kernels, kernels->size())));
  } else if (!kernels->empty()) {
    log(LogLevel::info, LogArea::load, std::nullopt,
        fmt::format("kernels of the library's plans lie in {}", quoted(*kernels, kernels->size())));
  }
  std::string place = options.folder;
  if (!place.empty() && !place.ends_with('/')) place += '/';
  ReadLibraryFile read = read_embedded;
  if (!place.empty()) read = [place](const std::string& name) { return read_file(place + name); };
  const auto text = read(kTable);
  if (!text) {
    refuse(fmt::format("cannot read '{}{}': {}", place, kTable, file_error(errno)),
           "a folder of programs has a library.json", diagnostics);
    return nullptr;
  }
  auto table = LibraryTable::parse(*text, place + kTable, diagnostics);
  if (!table || !names_programs(*table, place, diagnostics)) return nullptr;
  return std::make_shared<ProgramLibrary>(*std::move(table), std::move(read), std::move(place),
                                          *std::move(kernels), *policy);
}

}  // namespace mscclc
