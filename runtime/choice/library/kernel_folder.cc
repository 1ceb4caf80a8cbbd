#include "runtime/choice/library/kernel_folder.h"

#include <dlfcn.h>

#include <filesystem>

namespace mscclc {
namespace {

/// The library that this code is part of, or the program.
std::string own_file() {
  Dl_info info = {};
  const bool found = ::dladdr(reinterpret_cast<const void*>(&installed_kernels), &info) != 0;
  return found && info.dli_fname != nullptr ? info.dli_fname : "";
}

}  // namespace

// A file without a folder would be one of the working directory, from which no code is taken.
std::string installed_kernels(const std::string& file) {
  if (file.find('/') == std::string::npos) return "";
  std::error_code failed;
  const auto real = std::filesystem::canonical(file, failed);
  if (failed) return "";
  for (const auto& prefix :
       {real.parent_path().parent_path(), real.parent_path().parent_path().parent_path()}) {
    const auto folder = prefix / "share" / "mscclc" / "kernels";
    if (std::filesystem::is_directory(folder, failed)) return folder;
  }
  return "";
}

std::optional<std::string> kernel_folder(const Environment& environment, Diagnostics& diagnostics) {
  if (!environment.has(Variable::MSCCLC_KERNEL_PATH)) return installed_kernels(own_file());
  auto folder = environment.text(Variable::MSCCLC_KERNEL_PATH, diagnostics);
  if (!folder) return std::nullopt;
  if (*folder == "none") return "";
  while (folder->size() > 1 && folder->ends_with('/')) folder->pop_back();
  return folder;
}

}  // namespace mscclc
