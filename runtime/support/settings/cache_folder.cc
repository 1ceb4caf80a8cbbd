#include "runtime/support/settings/cache_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace mscclc {
namespace {

constexpr std::pair<Variable, const char*> kSystemFolders[] = {
    {Variable::XDG_CACHE_HOME, "/mscclc/"}, {Variable::HOME, "/.cache/mscclc/"}};

bool is_own(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

std::optional<CacheFolder> cache_folder(const Environment& environment, Variable variable,
                                        const std::string& name, Diagnostics& diagnostics) {
  if (environment.has(variable)) {
    auto named = environment.text(variable, diagnostics);
    return named ? std::optional(CacheFolder{*std::move(named)}) : std::nullopt;
  }
  Diagnostics of_others;  // what the system has set is no mistake of the job's
  for (const auto& [system, below] : kSystemFolders) {
    const auto folder = environment.text(system, of_others);
    if (folder && folder->starts_with('/')) return CacheFolder{*folder + below + name, *folder};
  }
  return CacheFolder{};
}

Result<Fd> open_own_folder(const std::string& path) {
  Fd opened(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!opened.valid() || fstat(opened.get(), &status) != 0) return Error{error_text(errno)};
  if (is_own(status)) return opened;
  return Error{kNotOwn};
}

// Of the last folder the mode is said: the process's mask may let others write.
Result<Fd> make_own_folder(const CacheFolder& folder) {
  std::error_code none;
  if (folder.path.empty()) return Error{"there is no folder for caches"};
  if (!folder.root.empty() && !std::filesystem::is_directory(folder.root, none)) {
    return Error{"there is no folder '" + folder.root + "'"};
  }
  std::filesystem::create_directories(std::filesystem::path(folder.path).parent_path(), none);
  (void)mkdir(folder.path.c_str(), 0700);  // or opening it says why not
  return open_own_folder(folder.path);
}

// What is no file must not be waited for.
Fd open_own_file(const Fd& folder, const std::string& name) {
  Fd file(openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  const bool good =
      file.valid() && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && is_own(status);
  return good ? std::move(file) : Fd();
}

}  // namespace mscclc
