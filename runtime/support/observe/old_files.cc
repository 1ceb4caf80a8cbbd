#include "runtime/support/observe/old_files.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

namespace mscclc {

void drop_old_files(const std::string& folder, const std::function<bool(std::string_view)>& is_one,
                    size_t most) {
  std::vector<std::tuple<int64_t, int64_t, std::string>> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries.get())) {
    struct stat status {};
    if (!is_one(entry->d_name)) continue;
    const std::string path = folder + "/" + entry->d_name;
    if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (status.st_uid != ::geteuid()) continue;
    found.emplace_back(status.st_mtim.tv_sec, status.st_mtim.tv_nsec, path);
  }
  if (found.size() <= most) return;
  std::sort(found.begin(), found.end());
  for (size_t i = 0; i < found.size() - most; ++i) ::unlink(std::get<2>(found[i]).c_str());
}

}  // namespace mscclc
